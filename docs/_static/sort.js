// A click on the head of a column sorts the rows of its table: by number where cells begin with one, else by text.
document.addEventListener("DOMContentLoaded", () => {
  const value = (row, k) => row.cells[k] ? row.cells[k].textContent.trim() : "";
  const number = (text) => parseFloat(text.replace(/^[≈≤≥+ ]+/, "").replace(/,/g, "").replace("\u2212", "-"));
  for (const table of document.querySelectorAll(".bd-article table.table, .bd-article table.docutils")) {
    const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    if (heads.length < 3 || table.tBodies[0].rows.length < 3) continue;
    heads.forEach((head, k) => {
      head.title = "Sort";
      head.classList.add("sorts");
      head.tabIndex = 0;
      const sort = () => {
        const up = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const compare = (a, b) => {
          const [x, y] = [value(a, k), value(b, k)], [m, n] = [number(x), number(y)];
          if (isNaN(m) || isNaN(n)) return isNaN(m) && isNaN(n) ? x.localeCompare(y) : isNaN(m) ? 1 : -1;
          return up ? m - n : n - m;
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  }
});
