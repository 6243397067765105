// What one agent was shown: the elements in its own order with its own numbers, and its prompt.

// Screen indices in the agent's order. A damaged trace may name elements that do not exist.
const shownTo = (m, now) => (m.order ?? [...now.elements.keys()]).filter((index) => now.elements[index]);

// The number that the agent has for an element of the screen. Hidden elements, which it knows from
// messages only, are numbered after the shown ones, in the order of the screen.
const ownNumber = (m, now, index) => {
  if (!m.order) return index;
  const place = m.order.indexOf(index);
  if (place >= 0) return place;
  const hidden = [...now.elements.keys()].filter((k) => !m.order.includes(k));
  return m.order.length + hidden.indexOf(index);
};

// Pairs of own and screen number of what a message acts on, where they differ.
const renumbered = (m, now) => (m.on || []).map((index) => [ownNumber(m, now, index), index])
  .filter(([own, index]) => own !== index);

const numbersNote = (m, now) => {
  const pairs = renumbered(m, now).map(([own, index]) => `its ${own} is [${index}] here`);
  return pairs.length ? make("small", "", pairs.join(", ")) : null;
};

const aboutView = (m, now) => {
  const all = now.elements.length;
  if (!m.order) return `${m.sender} saw all ${all} elements in the order of the screen. Its numbers are those of this page.`;
  const count = m.order.length;
  const part = count < all
    ? `${m.sender} saw ${count} of ${all} elements, numbered from 0 in its order. Numbers from ${count} on are hidden elements that other agents named.`
    : `${m.sender} saw the elements in an order of its own, drawn for this decision, and numbers them from 0 in that order.`;
  return `${part} Left: its number, used in its prompt and reply. Right: the number of the screen, used everywhere else on this page.`;
};

// The agent's numbers on the screenshot; what it did not see is covered.
const numberMarks = (m, now) => (image) => {
  const seen = new Map(shownTo(m, now).map((index, k) => [index, k]));
  const on = new Set(m.on || []);
  return now.elements.map((element, index) => {
    if (!element.bounds) return null;
    if (!seen.has(index)) return outline(element.bounds, image, "unseen");
    return outline(element.bounds, image, on.has(index) ? "numbered acted" : "numbered", make("b", "", String(seen.get(index))));
  }).filter(Boolean);
};

const viewList = (m, now) => {
  const on = new Set(m.on || []);
  const cut = new Set(m.cut || []);
  const head = make("li", "columns", make("span", "", m.order ? "its number" : "number"), m.order ? make("span", "", "screen") : null);
  const items = shownTo(m, now).map((index, k) => elementItem(now.elements[index], String(k),
    [on.has(index) ? "chosen" : "", cut.has(k) ? "cut" : ""],
    cut.has(k) ? make("span", "tag", "not in its prompt") : null,
    m.order ? make("span", "screen-number", `[${index}]`) : null));
  const hidden = now.elements.length - items.length;
  if (hidden > 0) items.push(make("li", "columns", make("span", "", `${hidden} elements were hidden from it`)));
  return make("ol", "elements own", head, ...items);
};

const agentView = (m, now) => {
  if (!now.agents.includes(m.sender)) return make("p", "note", `${m.sender} is no agent: it received messages, and did not see the screen.`);
  const list = viewList(m, now);
  if (now.png === null) return make("div", "", make("p", "note", aboutView(m, now)), titled(now, list));
  return make("div", "", make("p", "note", aboutView(m, now)), pictured(now, numberMarks(m, now)),
    make("p", "note", now.app), make("div", "phone", list));
};

const prompted = (m) => {
  const title = `Call of ${m.sender} in round ${m.round + 1}`;
  const parts = [];
  if (m.prompt) parts.push(make("h5", "", `Prompt, ${m.prompt.length.toLocaleString("en")} characters`), make("pre", "prompt", m.prompt));
  if (!parts.length) parts.push(make("p", "note", "No model was asked, or its prompt was not recorded."));
  return make("section", "call", make("h4", "", title), ...parts);
};
