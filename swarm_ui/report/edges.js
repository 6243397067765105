// Edge probabilities over iterations: a drawn graph with a slider.
const edgePicture = (nodes, frame) => {
  const gap = Math.max(76, ...nodes.map((name) => 7.4 * Math.min(14, name.length) + 16));
  const place = new Map(nodes.map((name, k) => [name, gap / 2 + k * gap]));
  const rise = (from, to) => (gap * 0.3 + 4) * Math.abs(nodes.indexOf(from) - nodes.indexOf(to));
  const tallest = (gap * 0.3 + 4) * Math.max(1, nodes.length - 1) + 18;
  const base = tallest + 8;
  const height = base + 44 + tallest;
  const picture = draw("svg", { viewBox: `0 0 ${gap * nodes.length} ${height}`, class: "arcs", role: "img",
    width: gap * nodes.length, height, "aria-label": `Edges, ${frame.label}` });
  for (const [from, to, p] of frame.edges) {
    const [x1, x2] = [place.get(from), place.get(to)];
    const up = x2 > x1;
    const high = (up ? 1 : -1) * rise(from, to);
    const line = arc(x1 + (up ? 5 : -5), x2 + (up ? -5 : 5), up ? base : base + 34, high, "edge");
    line.style.opacity = 0.12 + 0.88 * p;
    line.style.setProperty("--thick", `${0.8 + 3.2 * p}px`);
    line.append(told(`${from} → ${to}: ${p.toFixed(2)}`));
    picture.append(line);
    if (nodes.length <= 6) {
      picture.append(draw("text", { x: (x1 + x2) / 2, y: (up ? base - 4 : base + 48) - high, class: "name" }, p.toFixed(2)));
    }
  }
  for (const name of nodes) {
    picture.append(draw("g", {}, told(name),
      draw("rect", { x: place.get(name) - gap / 2 + 5, y: base, width: gap - 10, height: 34, rx: 9, class: "agent" }),
      draw("text", { x: place.get(name), y: base + 21, class: "name strong" }, short(name, 14))));
  }
  return picture;
};

const edgeTable = (frame) => {
  const rows = [...frame.edges].sort((a, b) => b[2] - a[2]).slice(0, 20);
  const box = make("div", "ballot");
  for (const [from, to, p] of rows) {
    const bar = make("div", "weight");
    bar.style.width = percent(p);
    box.append(make("span", "", `${from} → ${to}`), bar, make("span", "", p.toFixed(2)));
  }
  if (!rows.length) box.append(make("span", "note", "no edges"));
  if (frame.edges.length > rows.length) box.append(make("span", "note", `and ${frame.edges.length - rows.length} less likely`));
  return box;
};

const edgeFigure = (history) => {
  const slider = make("input", "");
  const last = history.frames.length - 1;
  Object.assign(slider, { type: "range", min: 0, max: last, step: 1, value: last });
  slider.setAttribute("aria-label", "Iteration");
  const label = make("output", "");
  const stage = make("div", "wide");
  const list = make("div", "");
  const show = () => {
    const frame = history.frames[Number(slider.value)];
    label.textContent = `${frame.label} of ${history.frames.length}`;
    slider.setAttribute("aria-valuetext", frame.label);
    stage.replaceChildren(edgePicture(history.nodes, frame));
    list.replaceChildren(edgeTable(frame));
  };
  slider.addEventListener("input", show);
  show();
  const bar = make("div", "bar", last ? slider : null, label);
  return make("figure", "history", make("figcaption", "", history.title), bar,
    make("div", "beside", stage, list), history.note ? make("p", "note", history.note) : null);
};

const startEdges = () => {
  const data = document.getElementById("edge-data");
  if (!data) return;
  document.getElementById("edges").append(...JSON.parse(data.textContent).map(edgeFigure));
};
