// Graphs on a circle: that of a run beside the true one, if it is known.

function decodeEdges(steps, nodes) {
  let code = 0;
  return steps.map((step) => {
    code += step;
    return [Math.floor(code / nodes), code % nodes];
  });
}

function drawGraph(edges, nodes, known, label) {
  const [size, radius] = [320, 128];
  const place = (i, r) => {
    const angle = (2 * Math.PI * i) / nodes - Math.PI / 2;
    return [size / 2 + r * Math.cos(angle), size / 2 + r * Math.sin(angle)];
  };
  const svg = draw("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label });
  const opacity = Math.max(0.12, Math.min(0.85, 60 / Math.max(edges.length, 1)));
  for (const [a, b] of edges) {
    const [[x1, y1], [x2, y2]] = [place(a, radius), place(b, radius)];
    const pull = 1 - Math.hypot(x1 - x2, y1 - y2) / (5 * radius); // neighbours: a straight line
    const bend = (p, q) => size / 2 + pull * ((p + q) / 2 - size / 2);
    const wrong = known !== null && !known.has(`${a} ${b}`);
    svg.append(draw("path", {
      class: wrong ? "edge wrong" : "edge",
      "stroke-opacity": opacity.toFixed(2),
      d: `M${x1.toFixed(1)} ${y1.toFixed(1)}Q${bend(x1, x2).toFixed(1)} ${bend(y1, y2).toFixed(1)} `
        + `${x2.toFixed(1)} ${y2.toFixed(1)}`,
    }));
  }
  const every = nodes <= 24 ? 1 : nodes <= 60 ? 5 : 10;
  for (let i = 0; i < nodes; i += 1) {
    const [cx, cy] = place(i, radius);
    svg.append(draw("circle", { class: "node", cx, cy, r: nodes > 60 ? 2 : 3.2 }));
    if (i % every === 0) {
      const [x, y] = place(i, radius + 15);
      svg.append(draw("text", { class: "middle", x, y: y + 4 }, String(i)));
    }
  }
  return svg;
}

function drawGraphs(graph, group) {
  const plates = make("div", { class: "graphs" });
  const truth = group.truth === null ? null : decodeEdges(group.truth, group.d);
  const comparable = graph.recovery !== null && truth !== null;
  const known = comparable ? new Set(truth.map(([a, b]) => `${a} ${b}`)) : null;
  const text = describeGraph(graph, comparable);
  plates.append(make("figure", {},
    graph.edges === null ? make("p", { class: "quiet" }, "Too many edges for this page.")
      : drawGraph(decodeEdges(graph.edges, graph.nodes), graph.nodes, known, text),
    make("figcaption", {}, text)));
  if (truth !== null) {
    const about = `The true graph of seed ${group.truth_seed}: ${count(truth.length, "edge")}.`;
    plates.append(make("figure", {}, drawGraph(truth, group.d, null, about),
      make("figcaption", {}, about + (comparable ? "" :
        " Its coordinates are not those of the method, so single edges cannot be compared."))));
  }
  return plates;
}

function describeGraph(graph, comparable) {
  const parts = [count(graph.count, "edge")];
  if (typeof graph.cliques === "number") {
    const sizes = Object.entries(graph.sizes ?? {}).map(([size, many]) => `${many} of size ${size}`);
    parts.push(count(graph.cliques, "clique") + (sizes.length ? ` (${sizes.join(", ")})` : ""));
  }
  let text = `The graph of this run, among ${graph.nodes} coordinates: ${parts.join(", ")}.`;
  if (comparable) {
    text += ` Precision ${formatNumber(graph.recovery.precision)}, recall ${formatNumber(graph.recovery.recall)};`
      + " edges that are not in the true graph are dashed.";
  }
  return text;
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
