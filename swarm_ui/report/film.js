// The steps of an episode as small pictures: click one. Below each: its credit.
const FELL = 0.1; // a smaller fall of the mean credit is not marked
const THUMB = { width: 54, height: 72 };

const meanCredit = (step) => {
  const scored = step.messages.map((m) => m.credit).filter((credit) => credit !== null);
  return scored.length ? scored.reduce((sum, credit) => sum + credit, 0) / scored.length : null;
};

// The elements as boxes where their bounds are known, else as lines as long as their labels.
const sketch = (step) => {
  const bounded = step.elements.map((element, k) => [element, k]).filter(([element]) => element.bounds);
  const picture = (width, height, ...children) => draw("svg", { class: "sketch", viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "xMidYMin meet", "aria-hidden": true }, ...children);
  const kind = (element, k) => (k === step.index ? "taken" : PASSIVE.includes(element.role) ? "words" : "active");
  if (bounded.length) {
    const reach = (side) => Math.max(1, ...bounded.map(([element]) => element.bounds[side]));
    const width = reach(2);
    const height = Math.max(reach(3), width);
    return picture(width, height, ...bounded.slice(0, 60).map(([element, k]) => {
      const [left, top, right, bottom] = element.bounds;
      return draw("rect", { class: kind(element, k), x: left, y: top, rx: width / 60,
        width: Math.max(0, right - left), height: Math.max(0, bottom - top) });
    }));
  }
  return picture(THUMB.width, THUMB.height, ...step.elements.slice(0, 11).map((element, k) => draw("rect", {
    class: kind(element, k), x: 5, y: 5 + 6 * k, rx: 1, height: 3.4, width: between(element.label.length * 1.6, 6, THUMB.width - 10) })));
};

const thumbnail = (step) => {
  if (step.png === null) return sketch(step);
  const image = make("img", "");
  Object.assign(image, { alt: "", draggable: false, decoding: "async", src: pictureSource(step.png) });
  return image;
};

// The credit of each message: a column for an agent, a row for a round. Unscored cells are empty.
const creditCells = (step) => {
  const said = step.messages.filter((m) => step.agents.includes(m.sender));
  if (!said.some((m) => m.credit !== null)) return draw("svg", { class: "credit-cells", viewBox: "0 0 1 1" });
  const rounds = 1 + Math.max(...said.map((m) => m.round));
  const cells = said.map((m) => {
    const cell = draw("rect", { x: step.agents.indexOf(m.sender) + 0.06, y: m.round + 0.08, width: 0.88, height: 0.84,
      class: m.credit === null ? "unscored-cell" : "scored-cell" });
    if (m.credit !== null) cell.style.setProperty("--share", percent(m.credit));
    return cell;
  });
  return draw("svg", { class: "credit-cells", viewBox: `0 0 ${step.agents.length} ${rounds}`, preserveAspectRatio: "none",
    "aria-hidden": true }, ...cells);
};

class Film {
  constructor(go) {
    this.go = go;
    this.node = make("ol", "film");
    this.note = make("p", "note", "");
  }

  show(steps) {
    let before = null;
    let falls = 0;
    const means = steps.map(meanCredit);
    this.node.replaceChildren(...steps.map((step, k) => {
      const mean = means[k];
      const fell = mean !== null && before !== null && before - mean >= FELL - 1e-9;
      const words = [`Step ${k + 1}: ${step.executed || step.decision || "no decision"}`,
        mean === null ? "" : `mean credit ${mean.toFixed(2)}`, fell ? `fell from ${before.toFixed(2)}` : ""].filter(Boolean).join(", ");
      falls += fell;
      if (mean !== null) before = mean;
      const frame = button("", words, () => this.go(k));
      if (fell) frame.classList.add("fell");
      const figure = make("span", "caption", make("span", "", String(k + 1)),
        mean === null ? null : make("span", "", `${fell ? "▾" : ""}${mean.toFixed(2)}`));
      frame.append(make("span", "thumb", thumbnail(step)), creditCells(step), figure);
      return make("li", "", frame);
    }));
    const scored = means.some((mean) => mean !== null);
    this.note.textContent = scored
      ? `Below a step: its number, its mean credit, and the credit of each message (a column for an agent, a row for a round; green 1, orange 0). ▾: the mean fell by ${FELL} or more${falls ? "" : " (nowhere here)"}.` : "";
    this.note.hidden = !scored;
    this.node.hidden = !steps.length;
  }

  mark(step) {
    [...this.node.children].forEach((item, k) => item.firstChild.setAttribute("aria-current", k === step));
    const [frame, strip] = [this.node.children[step]?.getBoundingClientRect(), this.node.getBoundingClientRect()];
    if (!frame) return;
    if (frame.left < strip.left) this.node.scrollLeft -= strip.left - frame.left + 8;
    else if (frame.right > strip.right) this.node.scrollLeft += frame.right - strip.right + 8;
  }
}
