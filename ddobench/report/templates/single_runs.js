// The section of single runs: five dependent choices, and an address for each run.

const CHOICES = ["task", "method", "d", "n", "seed"];

function startSingleRuns(section) {
  const form = section.querySelector("form");
  const panel = section.querySelector(".panel");
  const status = section.querySelector("[role=status]");
  let loading = null;
  let data = null;
  let shown = null;
  let chosenHere = false;

  function load() {
    loading ??= unpack(document.getElementById("run-data").textContent).then((found) => {
      data = prepare(found);
      offer(0);
      status.textContent = "";
    }).catch(() => {
      status.textContent = "This browser cannot unpack the runs; a current browser can.";
    });
    return loading;
  }

  // Fill the choices from level `from` on, keeping earlier values where possible.
  function offer(from, wanted = {}) {
    let rows = data.rows;
    for (const [level, name] of CHOICES.entries()) {
      const select = form.elements[name];
      if (level >= from) {
        const kept = String(wanted[name] ?? select.value);
        const options = new Map(rows.map((row) => [String(row[name]), row]));
        const ordered = [...options].sort(([, a], [, b]) =>
          (typeof a[name] === "number" ? a[name] - b[name] : 0));
        select.replaceChildren(...ordered.map(([value, row]) =>
          make("option", { value }, name === "seed" ? seedLabel(row) : value)));
        select.value = options.has(kept) ? kept : select.options[0].value;
      }
      rows = rows.filter((row) => String(row[name]) === select.value);
    }
    return rows[0];
  }

  function go(row) {
    const hash = `#run=${encodeURIComponent(row.digest)}/${row.seed}`;
    if (location.hash === hash) return follow();
    chosenHere = true;
    location.hash = hash;
  }

  async function follow() {
    if (!location.hash.startsWith("#run=")) return;
    await load();
    if (!data) return;
    const [digest, seed] = location.hash.slice("#run=".length).split("/");
    const row = data.byAddress.get(`${decode(digest)}/${seed}`);
    if (!row) {
      panel.hidden = true;
      status.textContent = "No run on this page has this address.";
      section.scrollIntoView();
      return;
    }
    status.textContent = "";
    offer(0, row);
    shown = row.index;
    fillPanel(panel, describeRun(data, shown), data.scores);
    if (!chosenHere) {
      panel.scrollIntoView();
      panel.querySelector("h3").focus({ preventScroll: true });
    }
    chosenHere = false;
  }

  function step(by) {
    const select = form.elements.seed;
    const next = select.selectedIndex + by;
    if (next < 0 || next >= select.options.length) return;
    select.selectedIndex = next;
    go(offer(CHOICES.length));
  }

  form.addEventListener("change", (event) => go(offer(CHOICES.indexOf(event.target.name) + 1)));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await load();
    if (data) go(offer(CHOICES.length));
  });
  form.querySelector("[name=previous]").addEventListener("click", () => data && step(-1));
  form.querySelector("[name=next]").addEventListener("click", () => data && step(1));
  window.addEventListener("hashchange", follow);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (shown !== null && window.innerWidth !== width) {
      fillPanel(panel, describeRun(data, shown), data.scores);
    }
    width = window.innerWidth;
  });
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    load();
  }, { rootMargin: "600px" }).observe(section);
  follow();
}

function prepare(data) {
  let start = 0;
  data.starts = data.curves.length.map((length) => {
    start += length;
    return start - length;
  });
  data.rows = data.runs.seed.map((seed, index) => {
    const { task, method, d, n, digest } = data.groups[data.runs.group[index]];
    const status = data.runs.status.texts[data.runs.status.of[index]];
    return { index, task, method, d, n, seed, digest, status };
  });
  data.byAddress = new Map(data.rows.map((row) => [`${row.digest}/${row.seed}`, row]));
  return data;
}

function seedLabel(row) {
  return row.status === "ok" ? String(row.seed) : `${row.seed} (${row.status})`;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
