// What the agents saw: the screenshot, or the elements where there is none; the chosen one outlined.
const PASSIVE = ["text", "label", "heading", "image"];

const outlined = (image, now, frame) => () => {
  const chosen = now.elements[now.index];
  if (!chosen || !chosen.bounds) return;
  const [left, top, right, bottom] = chosen.bounds;
  const mark = make("div", "mark");
  const place = { left, top, width: right - left, height: bottom - top };
  for (const [side, pixels] of Object.entries(place)) {
    const whole = side === "left" || side === "width" ? image.naturalWidth : image.naturalHeight;
    mark.style[side] = `${(100 * pixels) / whole}%`;
  }
  frame.append(mark);
};

const pictured = (now) => {
  const image = make("img", "");
  image.alt = `Screenshot: ${now.app}`;
  const frame = make("div", "phone", image);
  image.addEventListener("load", outlined(image, now, frame));
  image.src = pictureSource(now.png);
  return frame;
};

const elementItem = (now) => (element, k) => {
  const kinds = [PASSIVE.includes(element.role) ? "" : "act", k === now.index ? "chosen" : ""];
  return make("li", kinds.join(" ").trim(),
    make("span", "i", String(k)),
    make("span", "", element.label || "(no label)",
      element.value ? make("span", "tag", `“${element.value}”`) : null,
      ...element.state.map((state) => make("span", "tag", state))),
    make("span", "role", element.role));
};

// In the order of the screen, from top to bottom, where that is known; numbers are the indices.
const elementList = (now) => {
  const items = now.elements.map(elementItem(now));
  const top = (k) => now.elements[k].bounds ?? [0, Infinity];
  const order = [...items.keys()].sort((a, b) => top(a)[1] - top(b)[1] || top(a)[0] - top(b)[0] || a - b);
  return make("ol", "elements", ...order.map((k) => items[k]));
};

const screen = (now) => {
  if (now.png === null) return make("div", "phone", make("div", "title", now.app || "Screen"), elementList(now));
  const more = make("details", "", make("summary", "", `${now.elements.length} elements`), elementList(now));
  return make("div", "", pictured(now), make("p", "note", now.app), more);
};
