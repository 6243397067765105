// Runs before each MiniWoB++ page's own scripts and defines one global, `swarmUi`.
// One call per step: act, let the page settle, read the screen. Everything that crosses the
// boundary is JSON: arguments arrive as data, never as code.
(() => {
  "use strict";

  const MAX_ELEMENTS = 70;
  const SETTLE_MS = 4;
  const WAIT_MS = 500;
  const READY_MS = 5000;
  const NO_CLOCK_MS = 1e8;
  // The harness's own furniture; `#query` is the goal and is reported as such.
  const FURNITURE = new Set([
    "query", "reward-display", "sync-task-cover", "click-canvas", "attention-canvas",
  ]);
  const UNSEEN = new Set(["SCRIPT", "STYLE", "CANVAS", "BR", "HR", "HEAD", "TEMPLATE", "NOSCRIPT"]);
  const LAYOUT_WORDS = new Set(["spacer", "separator", "divider", "clear", "clearfix"]);
  // What a long page keeps when the list is cut: without these nothing can be finished.
  const CONTROL_ROLES = new Set(["button", "field", "area", "checkbox", "radio"]);
  const PUSH_TYPES = new Set(["submit", "button", "image", "reset"]);
  const CAPTION_TAGS = new Set(["LABEL", "P", "SPAN", "B", "STRONG", "DIV", "TD", "TH", "DT"]);
  const CONTROLS = "input, textarea, select";
  const CAPTION_LENGTH = 30;

  let shown = []; // DOM nodes of the last screen, in the order of its elements

  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();

  const ownText = (node) => {
    let text = "";
    for (const child of node.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) text += " " + child.nodeValue;
    }
    return squeeze(text);
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

  const accessibleName = (node) =>
    squeeze(node.getAttribute("aria-label") || node.title || node.alt || "");

  // jQuery UI names its pictures by class; arrows that only show a direction are left out.
  const pictureName = (node) => {
    const found = /(?:^|\s)ui-icon-(?!triangle|carat|caret|grip|blank)([a-z-]+)/.exec(node.className || "");
    return found ? squeeze(found[1].replace(/-/g, " ")) : "";
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

  // ---- reading the screen -------------------------------------------------------------------

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

    add(node, role, facts) {
      const box = node.getBoundingClientRect();
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
      const style = getComputedStyle(node);
      if (style.display === "none" || style.visibility === "hidden") return;
      const box = node.getBoundingClientRect();
      const visible = box.width > 0 && box.height > 0;
      const tag = node.tagName.toUpperCase();
      if (tag === "SELECT") return this.options(node);
      if (tag === "INPUT" || tag === "TEXTAREA") return visible ? this.control(node, tag) : undefined;
      if (tag === "BUTTON") {
        const text = squeeze(node.textContent);
        return this.add(node, "button", { text, description: text ? "" : describe(node) });
      }
      if (node instanceof SVGElement) this.shape(node, visible);
      else if (visible && !this.merged.has(node)) this.plain(node, tag, style);
      for (const child of node.children) this.visit(child);
    }

    options(select) {
      const description = this.captions.get(select) || describe(select);
      for (const option of select.options) {
        this.add(option, "option", {
          text: squeeze(option.text), description, checked: option.selected,
        });
      }
    }

    control(node, tag) {
      const type = tag === "TEXTAREA" ? "area" : node.type || "text";
      const caption = this.captions.get(node) || "";
      if (type === "checkbox" || type === "radio") {
        const description = caption ? "" : describe(node);
        return this.add(node, type, { text: caption, description, checked: node.checked });
      }
      if (PUSH_TYPES.has(type)) {
        const text = squeeze(node.value);
        return this.add(node, "button", { text, description: text ? "" : describe(node) });
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
      });
    }

    shape(node, visible) {
      const tag = node.tagName.toLowerCase();
      if (!visible || tag === "svg" || tag === "g") return;
      const fill = node.getAttribute("fill") || node.style.fill || "";
      this.add(node, "shape", { text: squeeze([fill, tag, ownText(node)].join(" ")) });
    }

    plain(node, tag, style) {
      const text = ownText(node);
      const paint = node.style.backgroundColor || "";
      if (text) {
        this.add(node, roleOf(node, tag, style), { text, selected: stateOf(node) });
      } else if (node.children.length === 0 && (describe(node) || paint)) {
        if (node.id === "area" || node.id === "area2") return;
        const description = squeeze(describe(node) + " " + paint);
        if (!LAYOUT_WORDS.has(description)) this.add(node, "icon", { description });
      }
    }
  }

  const roleOf = (node, tag, style) => {
    if (tag === "A" || node.classList.contains("alink")) return "link";
    if (tag === "LI") return "item";
    if (/^H\d$/.test(tag)) return "heading";
    if (tag === "LABEL") return "label";
    if (style.cursor === "pointer" || node.onclick || node.__onclick) return "item";
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

  const goalText = () => {
    const utterance = core.getUtterance();
    return typeof utterance === "string" ? utterance : utterance.utterance;
  };

  const observe = (note) => {
    const walk = new Walk();
    if (!WOB_DONE_GLOBAL) for (const node of document.body.children) walk.visit(node);
    walk.finish();
    shown = walk.nodes;
    return JSON.stringify({
      done: WOB_DONE_GLOBAL,
      raw: WOB_DONE_GLOBAL ? WOB_RAW_REWARD_GLOBAL : 0,
      goal: goalText(),
      elements: walk.elements,
      note: note || "",
    });
  };

  // ---- acting -------------------------------------------------------------------------------

  const fire = (node, type, x, y) => node.dispatchEvent(new MouseEvent(type, {
    bubbles: type !== "mouseenter", cancelable: true, composed: true, view: window,
    clientX: x, clientY: y, button: 0, buttons: type === "mousedown" ? 1 : 0, detail: 1,
  }));

  const focusOn = (node) => {
    const holder = node.closest("input, textarea, select, button, a[href], [tabindex]");
    if (holder) holder.focus();
    else if (document.activeElement && document.activeElement !== document.body) {
      document.activeElement.blur();
    }
  };

  const clickAt = (node, x, y) => {
    for (const type of ["mouseover", "mouseenter", "mousemove"]) fire(node, type, x, y);
    if (fire(node, "mousedown", x, y)) focusOn(node);
    fire(node, "mouseup", x, y);
    fire(node, "click", x, y);
  };

  const centre = (node) => {
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  const choose = (option) => {
    const select = option.closest("select");
    if (select.multiple) option.selected = !option.selected;
    else select.value = option.value, option.selected = true;
    for (const type of ["input", "change"]) {
      select.dispatchEvent(new Event(type, { bubbles: true }));
    }
  };

  const press = (node, type, key) =>
    node.dispatchEvent(new KeyboardEvent(type, {
      bubbles: true, cancelable: true, key, keyCode: key === "Enter" ? 13 : key.charCodeAt(0) || 0,
    }));

  // Date and time inputs hold ISO text; a person types what the browser shows.
  const inputValue = (node, text) => {
    const date = /^\s*(\d{1,2})\/(\d{1,2})\/(\d{4})\s*$/.exec(text);
    if (node.type === "date" && date) {
      return `${date[3]}-${date[1].padStart(2, "0")}-${date[2].padStart(2, "0")}`;
    }
    const time = /^\s*(\d{1,2}):(\d{2})\s*([AP])\.?M\.?\s*$/i.exec(text);
    if (node.type === "time" && time) {
      const hour = (Number(time[1]) % 12) + (time[3].toUpperCase() === "P" ? 12 : 0);
      return `${String(hour).padStart(2, "0")}:${time[2]}`;
    }
    return text;
  };

  const type = (node, text) => {
    node.focus();
    const last = text.slice(-1) || "Backspace";
    const owner = node instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
    press(node, "keydown", last);
    press(node, "keypress", last);
    Object.getOwnPropertyDescriptor(owner.prototype, "value").set.call(node, inputValue(node, text));
    node.dispatchEvent(new InputEvent("input", { bubbles: true, data: text }));
    press(node, "keyup", last);
    node.dispatchEvent(new Event("change", { bubbles: true }));
  };

  const scroll = (start, direction) => {
    let node = start;
    while (node && !canScroll(node)) node = node.parentElement;
    if (!node && !start) node = [...document.querySelectorAll("body *")].find(canScroll);
    node = node || document.scrollingElement;
    const [dx, dy] = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[direction];
    const before = [node.scrollLeft, node.scrollTop];
    // All the way: the observation lists what lies outside the view as well.
    node.scrollBy(dx * node.scrollWidth, dy * node.scrollHeight);
    node.dispatchEvent(new Event("scroll"));
    const moved = node.scrollLeft !== before[0] || node.scrollTop !== before[1];
    return moved ? "" : "nothing to scroll that way";
  };

  const select = (node, text) => {
    if (node.tagName !== "OPTION") return "not an option";
    const wanted = squeeze(text).toLowerCase();
    const options = [...node.closest("select").options];
    const same = (option) => squeeze(option.text).toLowerCase() === wanted;
    const option = !wanted || same(node) ? node : options.find(same);
    if (!option) return "no such option";
    choose(option);
    return "";
  };

  const click = (node, x, y, times) => {
    for (let n = 0; n < times; n++) {
      if (node.tagName === "OPTION") choose(node);
      else clickAt(node, x, y);
    }
    if (times === 2) fire(node, "dblclick", x, y);
    return "";
  };

  const perform = (action) => {
    if (action.type === "keyboard_enter") {
      const node = document.activeElement || document.body;
      for (const event of ["keydown", "keypress", "keyup"]) press(node, event, "Enter");
      return "";
    }
    const at = action.x !== null ? document.elementFromPoint(action.x, action.y) : null;
    const node = at || (action.index === null ? null : shown[action.index]);
    if (action.type === "scroll") return scroll(node, action.direction);
    if (!node || !node.isConnected) return "the element is no longer on the page";
    if (node.disabled) return "the element is disabled";
    if (action.type === "input_text") {
      if (!(node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement)
          || node.readOnly || PUSH_TYPES.has(node.type)) return "no text can be typed there";
      type(node, action.text);
      return "";
    }
    if (action.type === "select") return select(node, action.text);
    const [x, y] = at ? [action.x, action.y] : centre(node);
    return click(node, x, y, action.type === "double_tap" ? 2 : 1);
  };

  const act = async (action) => {
    let note = "";
    if (action.type === "wait") await sleep(WAIT_MS);
    else note = perform(action);
    await sleep(SETTLE_MS);
    return observe(note);
  };

  // ---- starting an episode ------------------------------------------------------------------

  // Set before a page makes its widgets: what a click opens is there when the screen is read.
  const stopDelays = () => {
    if (!window.jQuery) return;
    jQuery.fx.off = true;
    const { menu, autocomplete } = jQuery.ui || {};
    if (menu) menu.prototype.delay = 0;
    if (autocomplete) autocomplete.prototype.options.delay = 0;
  };

  const reset = async (seed) => {
    stopDelays();
    core.EPISODE_MAX_TIME = NO_CLOCK_MS;
    core.endEpisode(0);
    Math.seedrandom(seed);
    core.setDataMode("train");
    if (document.activeElement && document.activeElement !== document.body) {
      document.activeElement.blur();
    }
    core.startEpisodeReal();
    const limit = Date.now() + READY_MS;
    while (!WOB_TASK_READY && Date.now() < limit) await sleep(10);
    if (!WOB_TASK_READY) throw new Error(`the page is not ready after ${READY_MS} ms`);
    await sleep(SETTLE_MS);
    return observe("");
  };

  document.addEventListener("DOMContentLoaded", stopDelays);

  // Leaving the page would end the document, and the reward with it. These listeners come last:
  // the page's own handlers have run.
  window.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    if (link && !/^(#|javascript:)/i.test(link.getAttribute("href"))) event.preventDefault();
  });

  Object.defineProperty(window, "swarmUi", { value: Object.freeze({ reset, act }) });
})();
