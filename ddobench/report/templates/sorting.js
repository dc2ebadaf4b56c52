// Sortable tables: ascending, descending, then the original order; each body separately.

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function makeSortable(table) {
  const bodies = [...table.tBodies].map((body) => ({
    body,
    rows: [...body.rows].filter((row) => !row.querySelector("th[scope=rowgroup]")),
  }));
  const heads = columnHeads(table.tHead);
  for (const { head, column } of heads) {
    const button = make("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const next = now === null ? "ascending" : now === "ascending" ? "descending" : null;
      for (const other of heads) other.head.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      for (const { body, rows } of bodies) {
        body.append(...(next ? sortRows(rows, column, next === "ascending" ? 1 : -1) : rows));
      }
    });
  }
}

// The header cells of exactly one column, with its index; cells may span rows or columns.
function columnHeads(section) {
  const taken = [...section.rows].map(() => []);
  const heads = [];
  for (const [i, row] of [...section.rows].entries()) {
    let column = 0;
    for (const head of row.cells) {
      while (taken[i][column]) column += 1;
      for (let down = i; down < i + head.rowSpan; down += 1) {
        for (let right = 0; right < head.colSpan; right += 1) taken[down][column + right] = true;
      }
      if (head.colSpan === 1) heads.push({ head, column });
    }
  }
  return heads;
}

function sortRows(rows, column, sign) {
  const cells = rows.map((row) => row.cells[column]);
  const numeric = cells.some((cell) => cell && cell.hasAttribute("data-value"));
  const keyed = rows.map((row, i) => ({ row, key: sortKey(cells[i], numeric) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return sign * (numeric ? a.key - b.key : collator.compare(a.key, b.key));
  });
  return keyed.map(({ row }) => row);
}

function sortKey(cell, numeric) {
  const text = (cell ? (numeric ? cell.dataset.value ?? "" : cell.textContent) : "").trim();
  if (text === "" || text === DASH) return null;
  return numeric ? (Number.isNaN(Number(text)) ? null : Number(text)) : text;
}
