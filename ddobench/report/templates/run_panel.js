// One run: its status, scores, curve and graph, and the command that repeats it.

const UNITS = { sd: "sd", s: "s", raw: "raw units" };

function describeRun(data, i) {
  const runs = data.runs;
  const group = data.groups[runs.group[i]];
  const shared = (name) => runs[name].texts[runs[name].of[i]] ?? "";
  return {
    group,
    seed: runs.seed[i],
    status: shared("status"),
    reason: shared("reason"),
    sweep: shared("sweep"),
    origin: shared("origin"),
    finished: runs.finished[i],
    graph: runs.graph[i] === null ? null : data.graphs[runs.graph[i]],
    judged: runs.judged[i] === null ? null : data.judged[runs.judged[i]],
    scores: Object.fromEntries(data.scores.map(([name]) => [name, runs.scores[name][i]])),
    shown: { lines: data.lines, shares: data.shares, marks: data.marks },
    curve: cutCurve(data.curves, data.starts[i], data.curves.length[i]),
  };
}

function cutCurve(curves, start, length) {
  const cut = {};
  for (const [name, values] of Object.entries(curves)) {
    if (name !== "length") cut[name] = values.slice(start, start + length);
  }
  return cut;
}

function fillPanel(panel, run, scores) {
  panel.replaceChildren(heading(run), ...problem(run), scoreList(run, scores));
  panel.append(curveOf(run, panel));
  if (run.judged) panel.append(make("h4", {}, "Choice among candidates"), choiceTable(run.judged));
  if (run.graph) panel.append(make("h4", {}, "Graph"), drawGraphs(run.graph, run.group));
  panel.append(
    make("h4", {}, "Repeat this run"),
    make("pre", {}, make("code", {}, `${run.group.command} seed=${run.seed}`)),
    ...fold("Configuration", run.group.config, "Not stored."),
    ...fold("Provenance", originOf(run), "Not stored."),
  );
  panel.hidden = false;
}

function heading(run) {
  const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = run.group.color;
  const { task, method, d, n } = run.group;
  const status = make("span", { class: `tag ${run.status === "ok" ? "ok" : run.status === "failed" ? "failed" : "declined"}` },
    run.status === "ok" ? "finished" : run.status);
  return make("h3", { tabindex: "-1" }, swatch,
    `${method} on ${task}, d\u00a0=\u00a0${d}, n\u00a0=\u00a0${n}, seed\u00a0${run.seed} `, status);
}

function problem(run) {
  if (run.status === "ok" && !run.reason) return [];
  return [make("p", { class: "reason" }, run.reason || "No reason was recorded.")];
}

function scoreList(run, scores) {
  const list = make("dl", { class: "scores" });
  for (const [name, label, unit, meaning] of scores) {
    const value = run.scores[name];
    if (value === null) continue;
    const measure = unit === "regret" ? run.group.unit : unit;
    const text = unit === "share" ? formatPercent(value)
      : [formatNumber(value), UNITS[measure] ?? measure].filter(Boolean).join("\u00a0");
    list.append(make("div", {}, make("dt", { title: meaning }, label), make("dd", {}, text)));
  }
  return list;
}

function choiceTable(judged) {
  const head = ["Candidate", "Chosen", "Rank correlation on the best rows", "Error on them", "Why not judged"];
  const rows = judged.map((one) => make("tr", {},
    make("th", { scope: "row" }, one.candidate),
    make("td", { class: "words" }, one.chosen ? "chosen" : ""),
    make("td", {}, formatNumber(one.rank)), make("td", {}, formatNumber(one.error)),
    make("td", { class: "wrap" }, one.reason)));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Choice among candidates" },
    make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((name, i) =>
        make("th", { scope: "col", ...(i === 2 || i === 3 ? {} : { class: "words" }) }, name)))),
      make("tbody", {}, ...rows)));
}

function curveOf(run, panel) {
  const points = run.curve.iteration.length;
  if (points > 1) {
    panel.hidden = false; // so that it has a width
    const width = Math.max(280, Math.min(880, panel.clientWidth - 40));
    return drawCurve(run.curve, run.scores, run.shown, width);
  }
  return make("p", { class: "quiet" }, points
    ? "Designs were recorded at one iteration only, so there is no curve."
    : "No designs were recorded.");
}

function originOf(run) {
  const lines = [];
  if (run.finished) lines.push(`finished: ${run.finished}`);
  if (run.sweep) lines.push(`command: ${run.sweep}`);
  lines.push(`digest: ${run.group.digest}`);
  return `${lines.join("\n")}\n${run.origin}`;
}

function fold(title, text, absence) {
  return [make("details", {}, make("summary", {}, title),
    text ? make("pre", {}, make("code", {}, text)) : make("p", {}, absence))];
}
