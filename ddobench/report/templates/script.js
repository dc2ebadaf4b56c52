(() => {
"use strict";
{% include "elements.js" %}

{% include "sorting.js" %}

{% include "filter.js" %}

{% include "matrix.js" %}

{% include "chart.js" %}

{% include "circle.js" %}

{% include "run_panel.js" %}

{% include "blocks.js" %}

{% include "single_runs.js" %}

function activate(part) {
  for (const element of part.querySelectorAll(".scripted")) element.hidden = false;
  for (const element of part.querySelectorAll(".unscripted")) element.hidden = true;
  for (const table of part.querySelectorAll("table.sortable")) makeSortable(table);
  for (const table of part.querySelectorAll("table.matrix")) makeReadout(table);
  for (const form of part.querySelectorAll("form.filter")) makeFilter(form);
}

activate(document);
const section = document.getElementById("single-runs");
if (section) startSingleRuns(section);
startBlocks([...document.querySelectorAll("details.block")]);
})();
