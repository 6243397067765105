// The screen of a step: the screenshot, or the elements where there is none; the chosen one outlined.
const PASSIVE = ["text", "label", "heading", "image"];

// A frame in shares of the picture's size, around bounds in its pixels.
const outline = (bounds, image, className, ...children) => {
  const [left, top, right, bottom] = bounds;
  const mark = make("div", className, ...children);
  const place = { left, top, width: right - left, height: bottom - top };
  for (const [side, pixels] of Object.entries(place)) {
    const whole = side === "left" || side === "width" ? image.naturalWidth : image.naturalHeight;
    mark.style[side] = `${(100 * pixels) / whole}%`;
  }
  return mark;
};

// `marks(image)` makes the frames on the screenshot, once its size is known.
const pictured = (now, marks) => {
  const image = make("img", "");
  image.alt = `Screenshot: ${now.app}`;
  const frame = make("div", "phone", image);
  image.addEventListener("load", () => frame.append(...marks(image)));
  image.src = pictureSource(now.png);
  return frame;
};

const chosenMark = (now) => (image) => {
  const chosen = now.elements[now.index];
  return chosen?.bounds ? [outline(chosen.bounds, image, "mark")] : [];
};

const elementItem = (element, number, classes, ...aside) => make("li",
  [PASSIVE.includes(element.role) ? "" : "act", ...classes].filter(Boolean).join(" "),
  make("span", "i", number),
  make("span", "", element.label || "(no label)",
    element.value ? make("span", "tag", `“${element.value}”`) : null,
    ...element.state.map((state) => make("span", "tag", state))),
  make("span", "role", element.role), ...aside);

// In the order of the screen, from top to bottom, where that is known; numbers are the indices.
const elementList = (now) => {
  const items = now.elements.map((element, k) => elementItem(element, String(k), [k === now.index ? "chosen" : ""]));
  const top = (k) => now.elements[k].bounds ?? [0, Infinity];
  const order = [...items.keys()].sort((a, b) => top(a)[1] - top(b)[1] || top(a)[0] - top(b)[0] || a - b);
  return make("ol", "elements", ...order.map((k) => items[k]));
};

const titled = (now, ...children) => make("div", "phone", make("div", "title", now.app || "Screen"), ...children);

const screen = (now) => {
  if (now.png === null) return titled(now, elementList(now));
  const more = make("details", "", make("summary", "", `${now.elements.length} elements`), elementList(now));
  return make("div", "", pictured(now, chosenMark(now)), make("p", "note", now.app), more);
};
