// Reading the screen.
let whole = { nodes: [], at: 0, kept: null }; // the list before it was cut
let readFrom = null; // where the reader of a long list is: a node of it

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

  // At most MAX_ELEMENTS, numbered. A longer list shows what is in view, then controls, then what
  // is nearest to where the reader is; scrolling (see turnPage) moves the reader on.
  finish() {
    const count = this.nodes.length;
    whole = { nodes: this.nodes, at: 0, kept: null };
    this.more = null;
    if (count > MAX_ELEMENTS) this.cut(count);
    this.elements.forEach((element, index) => { element.index = index; });
  }

  cut(count) {
    const inView = this.nodes.map(isInView);
    const reader = readFrom ? this.nodes.indexOf(readFrom) : -1;
    const at = Math.max(0, reader < 0 ? inView.indexOf(true) : reader);
    const rank = (i) => {
      if (reader >= 0 && i >= at && i < at + PAGE_ELEMENTS) return 0;
      return inView[i] ? 1 : CONTROL_ROLES.has(this.elements[i].role) ? 2 : 3;
    };
    const far = (i) => (i >= at ? i - at : count + at - i);
    const kept = [...this.nodes.keys()]
      .sort((i, k) => rank(i) - rank(k) || far(i) - far(k))
      .slice(0, MAX_ELEMENTS).sort((i, k) => i - k);
    const before = kept.filter((i) => i < at).length;
    this.more = [at - before, count - at - (kept.length - before)];
    whole = { nodes: this.nodes, at, kept: new Set(kept) };
    this.nodes = kept.map((i) => this.nodes[i]);
    this.elements = kept.map((i) => this.elements[i]);
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
    const known = this.nodes.length;
    if (node.matches(SLIDERS)) {
      if (visible) this.slider(node);
      return;
    }
    if (tag === "CANVAS" || tag === "IMG") {
      if (visible) this.image(node, tag, box);
      return;
    }
    if (node instanceof SVGElement) {
      if (visible) this.shape(node, box);
    } else if (visible && !this.merged.has(node)) this.plain(node, tag, box);
    for (let child = node.firstElementChild; child; child = child.nextElementSibling) {
      this.visit(child);
    }
    if (tag === "SVG") { // the ground of a drawing comes after what is drawn on it
      const description = describe(node) || "drawing";
      if (visible && listening.has(node)) this.add(node, "image", { description }, box);
    } else if (visible && this.nodes.length === known && isActive(node) && !this.merged.has(node)) {
      const description = describe(node) || arrowName(node) || node.tagName.toLowerCase();
      this.add(node, node.matches(ACTIVE) ? "button" : "item", { description }, box);
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

  // A handle stands for its slider: numbers are typed into it, arrow keys move it.
  slider(handle) {
    const track = trackOf(handle);
    const { value, min, max } = sliderState(handle);
    this.add(handle, "field", {
      description: accessibleName(handle) || describe(track) || "slider",
      hint: `${min} to ${max}`,
      value: String(value),
      editable: true,
      class_name: "slider",
    }, track.getBoundingClientRect());
  }

  image(node, tag, box) {
    const description = describe(node);
    const role = tag === "IMG" && description ? "icon" : "image";
    this.add(node, role, { description: description || (tag === "IMG" ? "picture" : "canvas") }, box);
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

const isActive = (node) => {
  if (node === document.body || node.id === "wrap") return false;
  return listening.has(node) || Boolean(node.onclick) || node.matches(ACTIVE);
};

const isInView = (node) => {
  let { left, top, right, bottom } = node.getBoundingClientRect();
  for (let up = node.parentElement; up && up !== document.body; up = up.parentElement) {
    if (up.scrollHeight <= up.clientHeight + 1 && up.scrollWidth <= up.clientWidth + 1) continue;
    if (getComputedStyle(up).overflow === "visible") continue;
    const frame = up.getBoundingClientRect();
    left = Math.max(left, frame.left), right = Math.min(right, frame.right);
    top = Math.max(top, frame.top), bottom = Math.min(bottom, frame.bottom);
  }
  return right > Math.max(left, 0) && bottom > Math.max(top, 0)
    && left < window.innerWidth && top < window.innerHeight;
};

// Where bounds tell what names do not: drawings, sliders, things to drag, and grids whose cells
// have no names.
const DRAGGED = ".ui-draggable, .ui-sortable, .ui-resizable, [draggable=true]";
const isSpatial = (elements) => {
  if (elements.some((one) => one.role === "shape" || one.role === "image")) return true;
  if (elements.some((one) => one.class_name === "slider")) return true;
  const twins = new Map();
  for (const one of elements) {
    if (one.text || !["checkbox", "icon", "item"].includes(one.role)) continue;
    const name = `${one.role} ${one.description}`;
    twins.set(name, (twins.get(name) || 0) + 1);
  }
  if (Math.max(0, ...twins.values()) > elements.length / 2) return true;
  return document.querySelector(DRAGGED) !== null;
};

// jQuery UI's sliders, and those that say what they are in ARIA's words.
const trackOf = (handle) => handle.closest(".ui-slider") || handle.parentElement;
const sliderState = (handle) => {
  const widget = window.jQuery && jQuery.data(trackOf(handle), "ui-slider");
  if (widget) {
    const { min, max, values } = widget.options;
    const value = values ? widget.values(widget.handles.index(handle)) : widget.value();
    return { value, min, max };
  }
  const told = (name) => Number(handle.getAttribute(`aria-value${name}`));
  return { value: told("now"), min: told("min"), max: told("max") };
};

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

// Whoever waits for a frame is counted, so that the screen is read after it: callbacks, and
// transitions of the style sheets.
const nextFrame = window.requestAnimationFrame.bind(window);
const noFrame = window.cancelAnimationFrame.bind(window);
const pending = new Set();
window.requestAnimationFrame = (callback) => {
  const id = nextFrame((time) => { pending.delete(id); callback(time); });
  pending.add(id);
  return id;
};
window.cancelAnimationFrame = (id) => { pending.delete(id); noFrame(id); };

// And timers, which whoever reads the screen waits for: those that are nearly due, and those that
// an act started, directly or by a timer that it started. A page's own clockwork is not waited for.
const awaited = new Set();
let acting = false;
window.setTimeout = (callback, delay, ...given) => {
  const limit = acting ? ACT_TIMER_MS : SETTLE_MS;
  const waits = typeof callback === "function" && !(delay > limit);
  if (typeof callback !== "function") return later(callback, delay, ...given);
  const id = later((...told) => {
    const outside = acting;
    acting = outside && waits;
    try { callback(...told); } finally { acting = outside; awaited.delete(id); }
  }, delay, ...given);
  if (waits) awaited.add(id);
  return id;
};
window.clearTimeout = (id) => { awaited.delete(id); never(id); };

// A page hears of a changed selection later than the act that changed it.
const selectionNow = () => {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = window.getSelection() || {};
  return [anchorNode, anchorOffset, focusNode, focusOffset];
};
let selectionTold = [null, 0, null, 0];
listen.call(document, "selectionchange", () => { selectionTold = selectionNow(); });
const selectionWaits = () => selectionNow().some((part, k) => part !== selectionTold[k]);

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
    elements: walk.elements,
    more: walk.more,
    spatial: isSpatial(walk.elements),
    note: note || "",
  });
};
