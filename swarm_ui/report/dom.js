// Making elements. Text reaches the page as text nodes only, so nothing that a model or a screen
// said is ever markup.
const make = (name, className, ...children) => {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
};

const draw = (name, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null));
  return node;
};

const button = (text, label, act) => {
  const node = make("button", "", text);
  node.type = "button";
  node.setAttribute("aria-label", label);
  node.title = label;
  node.addEventListener("click", act);
  return node;
};

const choice = (label, options, act) => {
  const node = make("select", "");
  node.setAttribute("aria-label", label);
  for (const [value, text] of options) {
    const option = make("option", "", text);
    option.value = value;
    node.append(option);
  }
  node.addEventListener("change", () => act(node.value));
  return node;
};

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const between = (value, low, high) => Math.max(low, Math.min(high, value));

const percent = (share) => `${100 * between(share, 0, 1)}%`;
