"use strict";
// Sorts tables by a click on a column's heading; the page is whole without it.
(() => {
  const order = new Intl.Collator("en", { numeric: true });
  const NUMBER = /[-+<>±]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?/g;
  // The main line of a cell; of "from → to" the end. A word such as "not measured" has no value.
  const value = (cell) => {
    const main = cell.cloneNode(true);
    for (const small of main.querySelectorAll("small")) small.remove();
    const text = main.textContent.trim().replaceAll("\u2212", "-");
    const found = text.split("→").pop().match(NUMBER);
    return { text, number: found ? Number(found[0].replace(/[,+<>±]/g, "")) : null };
  };
  const compare = (numeric) => (a, b) => {
    if (!numeric) return order.compare(a.key.text, b.key.text);
    if (a.key.number === null || b.key.number === null) return 0;
    return a.key.number - b.key.number;
  };
  const sort = (table, index, numeric, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: value(row.cells[index]) }));
    const known = rows.filter((one) => !numeric || one.key.number !== null);
    const rest = rows.filter((one) => numeric && one.key.number === null);
    known.sort((a, b) => direction * compare(numeric)(a, b));
    body.append(...[...known, ...rest].map((one) => one.row));
  };
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const first = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        for (const other of heads) other.removeAttribute("aria-sort");
        if (now === "descending") {
          table.tBodies[0].append(...first);
        } else {
          head.setAttribute("aria-sort", now ? "descending" : "ascending");
          sort(table, index, head.classList.contains("n"), now ? -1 : 1);
        }
      });
    });
  }
})();
