// What an action changed: the elements before and after it, and the areas of the screenshot.
const CELL = 8; // pixels of the reduced screenshot that are compared together
const NOTICED = 40; // smallest difference of a pixel, summed over red, green and blue

// Pairs equal elements first, then those of one role and label, then those of one role and place.
const elementDifference = (before, after) => {
  const [left, right, pairs] = [[...before.elements], [...after.elements], []];
  const match = (key) => {
    const waiting = new Map();
    left.forEach((element, k) => {
      const name = element && key(element);
      if (name) waiting.set(name, [...(waiting.get(name) || []), k]);
    });
    right.forEach((element, k) => {
      const at = element ? waiting.get(key(element))?.shift() : undefined;
      if (at === undefined) return;
      pairs.push([left[at], element]);
      left[at] = right[k] = null;
    });
  };
  const content = ({ role, label, value, state }) => JSON.stringify([role, label, value ?? null, state]);
  match(content);
  match(({ role, label }) => label && JSON.stringify([role, label]));
  if (before.app === after.app) match(({ role, bounds }) => bounds && JSON.stringify([role, bounds]));
  return { gone: left.filter(Boolean), come: right.filter(Boolean),
    changed: pairs.filter(([a, b]) => content(a) !== content(b)) };
};

const stateOf = (element) => [element.value === undefined ? "" : `“${element.value}”`, ...element.state].filter(Boolean).join(", ") || "–";

const changeItem = (kind, sign, element, words) => make("li", kind, make("span", "i", sign),
  make("span", "", element.label || "(no label)", words ? make("span", "tag", words) : null),
  make("span", "role", element.role));

const differenceList = (before, after) => {
  const { gone, come, changed } = elementDifference(before, after);
  const become = ([a, b]) => (a.label === b.label ? `${stateOf(a)} → ${stateOf(b)}` : `was “${a.label}”`);
  const items = [...changed.map((pair) => changeItem("altered", "~", pair[1], become(pair))),
    ...gone.map((element) => changeItem("gone", "−", element)),
    ...come.map((element) => changeItem("come", "+", element))];
  const same = !items.length && before.app === after.app;
  const title = before.app === after.app ? after.app || "Screen" : `${before.app || "(no name)"} → ${after.app || "(no name)"}`;
  const said = same ? "The elements are the same as before the action."
    : `${changed.length} changed, ${gone.length} gone, ${come.length} new. Positions are not compared.`;
  return [make("p", "note", said),
    items.length ? make("div", "phone", make("div", "title", title), make("ol", "elements changes", ...items)) : null];
};

const pixels = (image, width, height) => {
  const canvas = make("canvas", "");
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
};

// Which cells of two pictures of one size differ.
const changedCells = (one, other, width, height) => {
  const across = Math.ceil(width / CELL);
  const cells = new Set();
  for (let k = 0; k < one.length; k += 4) {
    const apart = Math.abs(one[k] - other[k]) + Math.abs(one[k + 1] - other[k + 1]) + Math.abs(one[k + 2] - other[k + 2]);
    if (apart < NOTICED) continue;
    const pixel = k / 4;
    cells.add(Math.floor(pixel / width / CELL) * across + Math.floor((pixel % width) / CELL));
  }
  return { cells, across };
};

// A frame around each group of changed cells that touch, in cells: left, top, right, bottom.
const groups = ({ cells, across }) => {
  const found = [];
  while (cells.size) {
    const [first] = cells;
    const [box, waiting] = [[Infinity, Infinity, 0, 0], [first]];
    cells.delete(first);
    while (waiting.length) {
      const cell = waiting.pop();
      const [x, y] = [cell % across, Math.floor(cell / across)];
      box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x + 1); box[3] = Math.max(box[3], y + 1);
      for (let dy = -1; dy <= 1; dy += 1) {
        for (let dx = -1; dx <= 1; dx += 1) {
          const next = cell + dy * across + dx;
          if (x + dx >= 0 && x + dx < across && cells.delete(next)) waiting.push(next);
        }
      }
    }
    found.push(box);
  }
  return found;
};

// Bounds of the changed areas in pixels of the screenshots; all of it where their sizes differ.
const changedAreas = (one, other) => {
  const { naturalWidth: width, naturalHeight: height } = one;
  if (width !== other.naturalWidth || height !== other.naturalHeight) return [[0, 0, width, height]];
  const scale = Math.min(1, 540 / width);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  const side = CELL / scale;
  return groups(changedCells(pixels(one, w, h), pixels(other, w, h), w, h))
    .map(([left, top, right, bottom]) => [left * side, top * side, Math.min(width, right * side), Math.min(height, bottom * side)]);
};

// Both screenshots at one place, of which one is shown, with the changed areas outlined.
const comparison = (before, after) => {
  const sides = [before, after].map((now, k) => {
    const image = make("img", "");
    image.alt = `Screenshot ${k ? "after" : "before"} the action: ${now.app}`;
    return image;
  });
  const frame = make("div", "phone", ...sides);
  const count = make("span", "note", "");
  const chosen = ["Before", "After"].map((name, k) => button(name, `${name} the action`, () => show(k)));
  const show = (side) => {
    sides.forEach((image, k) => { image.hidden = k !== side; });
    chosen.forEach((node, k) => node.setAttribute("aria-pressed", k === side));
  };
  show(1);
  Promise.all(sides.map((image, k) => {
    image.src = pictureSource([before, after][k].png);
    return image.decode();
  })).then(() => {
    const areas = changedAreas(...sides);
    frame.append(...areas.map((bounds) => outline(bounds, sides[0], "area")));
    count.textContent = areas.length ? `${areas.length} changed ${areas.length === 1 ? "area" : "areas"}` : "no pixel changed";
  }).catch(() => { count.textContent = "the screenshots cannot be compared"; });
  return make("div", "", make("div", "looks", ...chosen, count), frame);
};

const difference = (before, after) => {
  if (!after) return make("p", "note", "The screen after the last step is not recorded.");
  const drawn = before.png !== null && after.png !== null ? comparison(before, after) : null;
  return make("div", "", drawn, ...differenceList(before, after).filter(Boolean));
};
