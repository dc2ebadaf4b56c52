// The curves of one run: values above, shares of the designs below.

const LEFT = 54;
const RIGHT = 14;

function drawCurve(curve, scores, shown, width) {
  const figure = make("figure", { class: "curve" });
  const lines = shown.lines.filter(([name]) => curve[name]?.some((value) => value !== null));
  const shares = shown.shares.filter(([name]) => curve[name]);
  const marks = shown.marks.filter(([name]) => typeof scores[name] === "number");
  const x = scale(curve.iteration[0], curve.iteration.at(-1), LEFT, width - RIGHT);
  const values = valuePanel(curve, scores, lines, marks, x, width);
  figure.append(values.svg, sharePanel(curve, shares, x, width));
  const legend = make("ul", { class: "legend" });
  for (const [name, label] of lines) legend.append(legendItem(name, label));
  if (shares.length > 1) {
    for (const [name, label] of shares) legend.append(legendItem(name, label));
  }
  for (const [name, label] of marks) {
    legend.append(legendItem(`mark ${name}`, `${label}, ${formatNumber(scores[name])}`));
  }
  const readout = make("p", { class: "readout" });
  const panels = [...figure.querySelectorAll("svg")];
  const guides = panels.map((svg) => svg.appendChild(draw("line",
    { class: "guide", x1: -9, x2: -9, y1: 0, y2: svg.dataset.floor })));
  const showPoint = (i) => { readout.textContent = readPoint(curve, lines, shares, i); };
  showPoint(curve.iteration.length - 1);
  const follow = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const far = curve.iteration.map((iteration) => Math.abs(x(iteration) - at));
    const nearest = far.indexOf(Math.min(...far));
    showPoint(nearest);
    for (const guide of guides) {
      fill(guide, { x1: x(curve.iteration[nearest]), x2: x(curve.iteration[nearest]) }, []);
    }
  };
  for (const svg of panels) svg.addEventListener("pointermove", follow);
  const caption = make("figcaption", {}, legend, readout);
  if (values.clipped) {
    caption.append(make("p", { class: "quiet" },
      "The prediction leaves the chart, whose scale is that of the values."));
  }
  caption.append(make("details", {}, make("summary", {}, "Curve as a table"),
    make("div", { class: "scroll" }, pointTable(curve, lines, shares))));
  figure.append(caption);
  return figure;
}

function valuePanel(curve, scores, lines, marks, x, width) {
  const height = 250;
  const own = lines.filter(([, , predicted]) => !predicted).flatMap(([name]) => curve[name]);
  const known = [...own, ...marks.map(([name]) => scores[name])].filter((value) => value !== null);
  let [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  const room = Math.max(high - low, 0.5);
  const predictions = lines.filter(([, , predicted]) => predicted).flatMap(([name]) => curve[name])
    .filter((value) => value !== null);
  const inside = predictions.filter((value) => value > low - room && value < high + room);
  [low, high] = [Math.min(low, ...inside), Math.max(high, ...inside)];
  const margin = 0.05 * Math.max(high - low, 0.5);
  const y = scale(low - margin, high + margin, height - 8, 10);
  const svg = panel(width, height, "Value of the designs at each iteration", height);
  axisLeft(svg, y, ticks(low - margin, high + margin, 6), width, "value [sd of visible values]", formatNumber);
  svg.append(draw("clipPath", { id: "curve-clip" }, draw("rect",
    { x: LEFT - 4, y: 0, width: width - LEFT - RIGHT + 8, height: height - 2 })));
  for (const [name] of marks) {
    svg.append(draw("line", { class: `line mark ${name}`, x1: LEFT, x2: width - RIGHT,
      y1: y(scores[name]), y2: y(scores[name]) }));
  }
  for (const [name] of lines) { // dashed lines on top, so that equal curves stay visible
    svg.append(draw("path", { class: `line ${name}`, d: pathOf(curve, name, x, y),
      "clip-path": "url(#curve-clip)" }));
  }
  return { svg, clipped: inside.length < predictions.length };
}

function sharePanel(curve, shares, x, width) {
  const height = 112;
  const y = scale(0, 1, height - 40, 8);
  const names = shares.map(([, label]) => label).join(", ");
  const svg = panel(width, height, `Share of designs at each iteration: ${names}`, y(0));
  axisLeft(svg, y, [0, 0.5, 1], width, `${names} [%]`, (share) => String(100 * share));
  for (const [name] of shares) {
    svg.append(draw("path", { class: `line ${name}`, d: pathOf(curve, name, x, y) }));
  }
  const [first, last] = [curve.iteration[0], curve.iteration.at(-1)];
  const wanted = ticks(first, last, Math.max(2, Math.round(width / 90)));
  for (const tick of wanted.filter(Number.isInteger)) {
    svg.append(draw("line", { class: "tick", x1: x(tick), x2: x(tick), y1: y(0), y2: y(0) + 4 }),
      draw("text", { class: "middle", x: x(tick), y: y(0) + 17 }, String(tick)));
  }
  svg.append(draw("text", { class: "middle name", x: (LEFT + width - RIGHT) / 2, y: height - 5 },
    "iteration"));
  return svg;
}

function panel(width, height, label, floor) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
    "data-floor": floor });
}

function axisLeft(svg, y, wanted, width, name, label) {
  for (const tick of wanted) {
    svg.append(draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      draw("text", { class: "end", x: LEFT - 7, y: y(tick) + 4 }, label(tick)));
  }
  svg.append(draw("text", { class: "middle name",
    transform: `translate(12 ${svg.dataset.floor / 2}) rotate(-90)` }, name));
}

function pathOf(curve, name, x, y) {
  let pen = "M";
  let path = "";
  for (const [i, value] of (curve[name] ?? []).entries()) {
    if (value === null) { pen = "M"; continue; }
    path += `${pen}${x(curve.iteration[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function legendItem(name, label) {
  const sample = draw("svg", { viewBox: "0 0 30 10", class: "sample", "aria-hidden": "true" },
    draw("line", { class: `line ${name}`, x1: 1, x2: 29, y1: 5, y2: 5 }));
  return make("li", {}, sample, label);
}

function readPoint(curve, lines, shares, i) {
  const parts = lines.map(([name, label]) => `${label} ${formatNumber(curve[name][i])}`);
  parts.push(...shares.map(([name, label]) => `${label} ${formatPercent(curve[name][i])}`));
  return `Iteration ${curve.iteration[i]}: ${parts.join(", ")}.`;
}

function pointTable(curve, lines, shares) {
  const names = ["iteration", ...[...lines, ...shares].map(([, label]) => label)];
  const head = make("thead", {}, make("tr", {},
    ...names.map((name) => make("th", { scope: "col" }, name))));
  const rows = curve.iteration.map((iteration, i) => make("tr", {},
    make("th", { scope: "row" }, String(iteration)),
    ...lines.map(([name]) => make("td", {}, formatNumber(curve[name][i]))),
    ...shares.map(([name]) => make("td", {}, formatPercent(curve[name][i])))));
  return make("table", { class: "dense" }, head, make("tbody", {}, ...rows));
}

function scale(from, to, start, end) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

function ticks(low, high, count) {
  const rough = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k += 1) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}
