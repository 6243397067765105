// What is on a page and how to call it. The three page_*.js files run as one function, before each
// MiniWoB++ page's own scripts, and define one global, `swarmUi`. One call per step: act, let the
// page settle, read the screen. Everything that crosses the boundary is JSON: arguments arrive as
// data, never as code.
const MAX_ELEMENTS = 70;
const PAGE_ELEMENTS = 40; // of a long list, that a scroll moves on by
const SETTLE_MS = 4;
const ACT_TIMER_MS = 350; // timers up to this delay that an act starts are waited for
const ACT_LIMIT_MS = 700;
const SELECTION_MS = 100;
const WAIT_MS = 500;
const READY_MS = 5000;
const NO_CLOCK_MS = 1e8;
const MOVE_MS = 700; // animations are waited for
const FRAME_MS = 16;
// The harness's own furniture; `#query` is the goal and is reported as such.
const FURNITURE = new Set([
  "query", "reward-display", "sync-task-cover", "click-canvas", "attention-canvas",
]);
const UNSEEN = new Set(["SCRIPT", "STYLE", "BR", "HR", "HEAD", "TEMPLATE", "NOSCRIPT"]);
const LAYOUT_WORDS = new Set(["spacer", "separator", "divider", "clear", "clearfix"]);
// What a long list shows early: without these nothing can be finished.
const CONTROL_ROLES = new Set(["button", "field", "area", "checkbox", "radio"]);
const PUSH_TYPES = new Set(["submit", "button", "image", "reset"]);
const CAPTION_TAGS = new Set(["LABEL", "P", "SPAN", "B", "STRONG", "DIV", "TD", "TH", "DT"]);
const CONTROLS = "input, textarea, select";
const CAPTION_LENGTH = 30;
const SMALL_DRAG = 20; // pixels, from a bare point in a direction
const PAST_MIDDLE = 4;
const SLIDERS = ".ui-slider-handle, [role=slider]";
const ACTIVE = "[role=button], [role=tab], [role=link], [role=menuitem], .ui-spinner-button";
const MOUSE_EVENTS = new Set(["click", "dblclick", "mousedown", "mouseup", "pointerdown"]);
const AHEAD = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

let shown = []; // DOM nodes of the last screen, in the order of its elements

const later = window.setTimeout.bind(window);
const never = window.clearTimeout.bind(window);
const sleep = (ms) => new Promise((resolve) => later(resolve, ms));
const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();

const ownText = (node) => {
  let text = "";
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (child.nodeType === Node.TEXT_NODE) text += " " + child.nodeValue;
  }
  return text && squeeze(text);
};

// ---- what to call an element that shows no text -------------------------------------------

const nameWords = (node) => {
  const className = typeof node.className === "string" ? node.className : "";
  const words = (className + " " + (node.id || ""))
    .replace(/ui-[\w-]+|\d+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/[-_]/g, " ");
  const told = squeeze(words).toLowerCase().split(" ").filter((word) => word.length > 2);
  return [...new Set(told)].join(" ");
};

// Elements with listeners for the mouse: a person can act on them, whatever they look like.
const listening = new WeakSet();
const listen = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (type, ...given) {
  if (this instanceof Element && MOUSE_EVENTS.has(type)) listening.add(this);
  return listen.call(this ?? window, type, ...given);
};

const accessibleName = (node) =>
  squeeze(node.getAttribute("aria-label") || node.title || node.alt || "");

// jQuery UI names its pictures by class; arrows that only show a direction are left out.
const pictureName = (node) => {
  const found = /(?:^|\s)ui-icon-(?!triangle|carat|caret|grip|blank)([a-z-]+)/.exec(node.className || "");
  return found ? squeeze(found[1].replace(/-/g, " ")) : "";
};

const ARROWS = { n: "up", s: "down", w: "left", e: "right" };
const arrowName = (node) => {
  const found = /\bui-icon-(?:triangle|carat|arrow)-1-([nsew])\b/.exec(node.innerHTML);
  return found ? ARROWS[found[1]] : "";
};

const describe = (node) => accessibleName(node) || nameWords(node) || pictureName(node);

const shortCaption = (node) => {
  if (!node || !CAPTION_TAGS.has(node.tagName) || FURNITURE.has(node.id)) return "";
  if (node.querySelector(`${CONTROLS}, a, button, li`)) return "";
  const text = squeeze(node.textContent);
  return text.length < CAPTION_LENGTH ? text : "";
};

// The caption of a form control, and the <label> it came from (which is then not listed).
const captionOf = (control) => {
  let label = control.closest("label");
  if (!label && control.id) {
    label = document.querySelector(`label[for="${CSS.escape(control.id)}"]`);
  }
  if (label) return [squeeze(ownText(label) || label.textContent), label];
  if (control.type === "checkbox" || control.type === "radio") {
    const next = control.nextSibling;
    const text = next && next.nodeType === Node.TEXT_NODE ? squeeze(next.nodeValue) : "";
    return [text || shortCaption(control.nextElementSibling), null];
  }
  return captionBefore(control);
};

// Without a <label>, a control is called after the short text in front of it, up to the
// box that holds other controls too: a cell to its left, a line above; else the text behind
// it, when the two share a box.
const captionBefore = (control) => {
  for (let node = control, up = 0; node && up < 3; node = node.parentElement, up++) {
    if (up > 0 && node.querySelectorAll(CONTROLS).length > 1) break;
    const before = node.previousElementSibling;
    if (!before) continue;
    if (before.matches(CONTROLS) || before.querySelector(CONTROLS + ", button")) break;
    const text = shortCaption(before);
    return [text, text && before.tagName === "LABEL" ? before : null];
  }
  const alone = control.parentElement.querySelectorAll(CONTROLS).length === 1;
  return [alone ? shortCaption(control.nextElementSibling) : "", null];
};
