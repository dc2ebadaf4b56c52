// The filter of a table: words, a task and a method, which the address keeps.

function makeFilter(form) {
  const table = document.getElementById(form.dataset.table);
  const status = form.querySelector("[role=status]");
  const rows = [...table.querySelectorAll("tbody tr[data-task]")];
  const fields = ["words", "task", "method"].map((name) => form.elements[name]);
  const anchor = `#${form.dataset.section}?`;

  function apply() {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = `${row.dataset.words} ${row.querySelector("th").textContent}`.toLowerCase();
      const wanted = words.every((word) => text.includes(word))
        && ["task", "method"].every((name) =>
          [``, row.dataset[name]].includes(form.elements[name].value));
      row.hidden = !wanted;
      shown += wanted;
    }
    for (const body of table.tBodies) {
      body.hidden = ![...body.rows].some((row) => row.dataset.task !== undefined && !row.hidden);
    }
    table.hidden = shown === 0;
    status.textContent = shown ? `${shown} of ${rows.length} rows shown` : "No row matches.";
  }

  function writeAddress() {
    const chosen = new URLSearchParams();
    for (const field of fields) if (field.value) chosen.set(field.name, field.value);
    const hash = chosen.size ? anchor + chosen : `#${form.dataset.section}`;
    history.replaceState(null, "", hash);
  }

  function readAddress() {
    if (!location.hash.startsWith(anchor)) return;
    const chosen = new URLSearchParams(location.hash.slice(anchor.length));
    for (const field of fields) field.value = chosen.get(field.name) ?? "";
    for (const field of fields) field.value ||= ""; // a value that no option has
    form.closest("details").open = true;
    document.getElementById(form.dataset.section).scrollIntoView();
  }

  form.addEventListener("input", () => { apply(); writeAddress(); });
  form.addEventListener("reset", () => setTimeout(() => { apply(); writeAddress(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { readAddress(); apply(); });
  readAddress();
  apply();
}
