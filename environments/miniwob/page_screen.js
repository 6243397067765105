// Reading the screen.
class Walk {
  constructor() {
    this.nodes = [];
    this.elements = [];
    this.captions = new Map();
    this.merged = new Set(); // labels told together with their control
    for (const control of document.querySelectorAll(CONTROLS)) {
      const [text, label] = captionOf(control);
      this.captions.set(control, text);
      if (label) this.merged.add(label);
    }
  }

  add(node, role, facts, box = node.getBoundingClientRect()) {
    const bounds = [box.left, box.top, box.right, box.bottom].map(Math.round);
    const focused = node === document.activeElement;
    this.elements.push({ role, bounds, focused, enabled: !node.disabled, ...facts });
    this.nodes.push(node);
  }

  // At most MAX_ELEMENTS, numbered; what goes are the last ones that are not controls.
  finish() {
    for (let i = this.elements.length - 1; i >= 0 && this.elements.length > MAX_ELEMENTS; i--) {
      if (CONTROL_ROLES.has(this.elements[i].role)) continue;
      this.elements.splice(i, 1);
      this.nodes.splice(i, 1);
    }
    this.elements.length = Math.min(this.elements.length, MAX_ELEMENTS);
    this.elements.forEach((element, index) => { element.index = index; });
  }

  visit(node) {
    if (FURNITURE.has(node.id) || UNSEEN.has(node.tagName)) return;
    if (!node.checkVisibility({ visibilityProperty: true })) return;
    const box = node.getBoundingClientRect();
    const visible = box.width > 0 && box.height > 0;
    const tag = node.tagName.toUpperCase();
    if (tag === "SELECT") return this.options(node);
    if (tag === "INPUT" || tag === "TEXTAREA") {
      if (visible) this.control(node, tag, box);
      return;
    }
    if (tag === "BUTTON") {
      const text = squeeze(node.textContent);
      return this.add(node, "button", { text, description: text ? "" : describe(node) }, box);
    }
    if (node instanceof SVGElement) {
      if (visible) this.shape(node, box);
    } else if (visible && !this.merged.has(node)) this.plain(node, tag, box);
    for (let child = node.firstElementChild; child; child = child.nextElementSibling) {
      this.visit(child);
    }
  }

  options(select) {
    const description = this.captions.get(select) || describe(select);
    for (const option of select.options) {
      this.add(option, "option", {
        text: squeeze(option.text), description, checked: option.selected,
      });
    }
  }

  control(node, tag, box) {
    const type = tag === "TEXTAREA" ? "area" : node.type || "text";
    const caption = this.captions.get(node) || "";
    if (type === "checkbox" || type === "radio") {
      const description = caption ? "" : describe(node);
      return this.add(node, type, { text: caption, description, checked: node.checked }, box);
    }
    if (PUSH_TYPES.has(type)) {
      const text = squeeze(node.value);
      return this.add(node, "button", { text, description: text ? "" : describe(node) }, box);
    }
    const name = caption || accessibleName(node) || (node.placeholder ? "" : nameWords(node));
    const secret = type === "password" && !/password/i.test(name);
    this.add(node, type === "area" ? "area" : "field", {
      text: caption && secret ? caption + " password" : caption,
      description: caption ? "" : squeeze((secret ? "password " : "") + name),
      hint: squeeze(node.placeholder),
      value: node.value,
      editable: !node.readOnly && !node.disabled,
      scrollable: type === "area" && canScroll(node),
    }, box);
  }

  shape(node, box) {
    const tag = node.tagName.toLowerCase();
    if (tag === "svg" || tag === "g") return;
    const fill = node.getAttribute("fill") || node.style.fill || "";
    this.add(node, "shape", { text: squeeze([fill, tag, ownText(node)].join(" ")) }, box);
  }

  plain(node, tag, box) {
    const text = ownText(node);
    const paint = node.style.backgroundColor || "";
    if (text) {
      this.add(node, roleOf(node, tag), { text, selected: stateOf(node) }, box);
    } else if (node.children.length === 0 && (describe(node) || paint)) {
      if (node.id === "area" || node.id === "area2") return;
      const description = squeeze(describe(node) + " " + paint);
      if (!LAYOUT_WORDS.has(description)) this.add(node, "icon", { description }, box);
    }
  }
}

const roleOf = (node, tag) => {
  if (tag === "A" || node.classList.contains("alink")) return "link";
  if (tag === "LI") return "item";
  if (/^H\d$/.test(tag)) return "heading";
  if (tag === "LABEL") return "label";
  if (node.onclick || node.__onclick) return "item";
  if (getComputedStyle(node).cursor === "pointer") return "item";
  return tag === "TD" || tag === "TH" ? "cell" : "text";
};

const stateOf = (node) => {
  const holder = node.closest("[aria-selected], [aria-expanded]:not(ul)");
  const state = holder
    && (holder.getAttribute("aria-selected") || holder.getAttribute("aria-expanded"));
  return state === "true" ? true : state === "false" ? false : null;
};

const canScroll = (node) => {
  if (node.scrollHeight <= node.clientHeight + 1) return false;
  return node.tagName === "TEXTAREA" || /auto|scroll/.test(getComputedStyle(node).overflowY);
};

// Pages draw frames only on request where the browser can (see page.py), so whoever waits for a
// frame is counted: callbacks, and transitions of the style sheets.
const nextFrame = window.requestAnimationFrame.bind(window);
const noFrame = window.cancelAnimationFrame.bind(window);
const pending = new Set();
window.requestAnimationFrame = (callback) => {
  const id = nextFrame((time) => { pending.delete(id); callback(time); });
  pending.add(id);
  return id;
};
window.cancelAnimationFrame = (id) => { pending.delete(id); noFrame(id); };

// And timers that are nearly due, which whoever reads the screen waits for.
const soon = new Set();
window.setTimeout = (callback, delay, ...given) => {
  if (typeof callback !== "function" || delay > SETTLE_MS) return later(callback, delay, ...given);
  const id = later((...told) => { soon.delete(id); callback(...told); }, delay, ...given);
  soon.add(id);
  return id;
};
window.clearTimeout = (id) => { soon.delete(id); never(id); };

const moves = (animation) => animation.playState === "running"
  && Number.isFinite(animation.effect.getComputedTiming().endTime);

const busy = () =>
  !WOB_DONE_GLOBAL && (pending.size > 0 || document.getAnimations().some(moves));

const observe = (note) => {
  const walk = new Walk();
  if (!WOB_DONE_GLOBAL) for (const node of document.body.children) walk.visit(node);
  walk.finish();
  shown = walk.nodes;
  const said = core.getUtterance();
  return JSON.stringify({
    done: WOB_DONE_GLOBAL,
    raw: WOB_DONE_GLOBAL ? WOB_RAW_REWARD_GLOBAL : 0,
    goal: typeof said === "string" ? said : said.utterance,
    fields: typeof said === "string" ? null : said.fields,
    elements: walk.elements,
    note: note || "",
    busy: busy(),
  });
};
