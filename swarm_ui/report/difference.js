// What an action changed: the elements before and after it.

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

const difference = (before, after) => {
  if (!after) return make("p", "note", "The screen after the last step is not recorded.");
  const { gone, come, changed } = elementDifference(before, after);
  const become = ([a, b]) => (a.label === b.label ? `${stateOf(a)} → ${stateOf(b)}` : `was “${a.label}”`);
  const items = [...changed.map((pair) => changeItem("altered", "~", pair[1], become(pair))),
    ...gone.map((element) => changeItem("gone", "−", element)),
    ...come.map((element) => changeItem("come", "+", element))];
  const same = !items.length && before.app === after.app;
  const title = before.app === after.app ? after.app || "Screen" : `${before.app || "(no name)"} → ${after.app || "(no name)"}`;
  const said = same ? "The elements are the same as before the action."
    : `${changed.length} changed, ${gone.length} gone, ${come.length} new. Positions are not compared.`;
  const list = make("div", "phone", make("div", "title", title), make("ol", "elements changes", ...items));
  return make("div", "", make("p", "note", said), items.length ? list : null);
};
