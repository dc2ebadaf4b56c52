(() => {
"use strict";
{% include "elements.js" %}

{% include "sorting.js" %}

{% include "filter.js" %}

{% include "chart.js" %}

{% include "circle.js" %}

{% include "run_panel.js" %}

{% include "single_runs.js" %}

for (const element of document.querySelectorAll(".scripted")) element.hidden = false;
for (const element of document.querySelectorAll(".unscripted")) element.hidden = true;
for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
for (const form of document.querySelectorAll("form.filter")) makeFilter(form);
const section = document.getElementById("single-runs");
if (section) startSingleRuns(section);
})();
