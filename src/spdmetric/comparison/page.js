"use strict";
// Tables that say so are sorted by the heading that is pressed; without this they are simply tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = Array.from(table.tHead.rows[0].cells);
  const key = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
  const order = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return a !== "" && b !== "" && !isNaN(x) && !isNaN(y) ? x - y : a.localeCompare(b);
  };
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      const first = heading.dataset.first ?? "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const now = before === first ? other : first;
      headings.forEach((h) => h.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", now);
      const sign = now === "ascending" ? 1 : -1;
      const rows = Array.from(body.rows).sort((r, s) => sign * order(key(r, at), key(s, at)));
      body.append(...rows);
    });
  });
}
// What can be copied gets a button, and so does every picture that can be saved.
const button = (words, work) => {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "tool";
  made.textContent = words;
  made.addEventListener("click", () => work(made));
  return made;
};
const copied = (text, made) => {
  const say = (words) => { made.textContent = words; setTimeout(() => { made.textContent = "Copy"; }, 2000); };
  navigator.clipboard?.writeText(text).then(() => say("Copied"), () => say("Copying is not allowed here"));
};
for (const place of document.querySelectorAll("[data-copy]")) {
  place.after(button("Copy", (made) => copied(place.textContent, made)));
}
// A picture alone brings the rules of its classes, with the colors of paper in place of the variables.
const alone = (svg, name) => {
  const rules = Array.from(document.styleSheets[0].cssRules, (rule) => rule.cssText)
    .filter((text) => text.startsWith(`.${name}-`))
    .map((text) => text.replace(/var\(--[\w-]+, ([^)]+)\)/g, "$1"));
  const copy = svg.cloneNode(true), style = document.createElementNS(svg.namespaceURI, "style");
  style.textContent = `*{stroke-linejoin:round;stroke-linecap:butt}${rules.join("")}`;
  copy.prepend(style);
  return new XMLSerializer().serializeToString(copy);
};
for (const svg of document.querySelectorAll("figure svg")) {
  const name = svg.getAttribute("aria-labelledby").replace(/-title$/, "");
  const save = button("Save SVG", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([alone(svg, name)], { type: "image/svg+xml" }));
    link.download = `${name}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  save.setAttribute("aria-label", `Save SVG of the picture ${name}`);
  svg.parentElement.querySelector("figcaption").append(" ", save);
}
