// The matrix of a suite: what a cell holds is shown above it when it is pointed at or tapped.

function makeReadout(table) {
  const readout = table.closest("section").querySelector(".readout");
  table.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td.cell");
    if (cell) readout.textContent = cell.title;
  });
}
