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
// What can be copied gets a button.
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
