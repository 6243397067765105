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

const KEY_CODES = { Enter: 13, ArrowLeft: 37, ArrowRight: 39 };
const press = (node, type, key) =>
  node.dispatchEvent(new KeyboardEvent(type, {
    bubbles: true, cancelable: true, key, keyCode: KEY_CODES[key] || key.charCodeAt(0) || 0,
  }));

// With the arrow keys, as a person would who wants a certain number.
const slide = (handle, text) => {
  const wanted = Number(text);
  const { min, max } = sliderState(handle);
  if (!text.trim() || !(wanted >= min && wanted <= max)) {
    return `the slider takes a number from ${min} to ${max}`;
  }
  handle.focus();
  for (let { value } = sliderState(handle), side = Math.sign(wanted - value); value !== wanted;) {
    const key = side > 0 ? "ArrowRight" : "ArrowLeft";
    for (const type of ["keydown", "keyup"]) press(handle, type, key);
    const moved = sliderState(handle).value;
    if (moved === value || Math.sign(wanted - moved) === -side) {
      return `the slider stops at ${moved}`;
    }
    value = moved;
  }
  return "";
};

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

// A list that was cut goes on where it ended; the page scrolls there too.
const turnPage = (direction) => {
  const { nodes, at, kept } = whole;
  if (!kept || !["up", "down"].includes(direction)) return false;
  const next = direction === "down" ? nodes.findIndex((_, i) => i > at && !kept.has(i))
    : Math.max(0, at - PAGE_ELEMENTS);
  if (next < 0 || next === at) return false;
  readFrom = nodes[next];
  readFrom.scrollIntoView({ block: "start", behavior: "instant" });
  return true;
};

const scroll = (start, direction) => {
  if (!(start instanceof HTMLTextAreaElement) && turnPage(direction)) return "";
  let node = start;
  while (node && !canScroll(node)) node = node.parentElement;
  if (!node && !start) node = [...document.querySelectorAll("body *")].find(canScroll);
  node = node || document.scrollingElement;
  const [dx, dy] = AHEAD[direction];
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

// Give the keyboard to an element, or say why not.
const takeKeys = (node) => {
  if (!node || !node.isConnected) return "the element is no longer on the page";
  focusOn(node);
  const active = document.activeElement;
  const taken = active && active !== document.body
    && (node.contains(active) || active.contains(node));
  return taken ? "" : "the element takes no keys";
};

const perform = (action) => {
  if (action.action_type === "keyboard_enter") {
    const problem = action.index === undefined ? "" : takeKeys(shown[action.index]);
    if (problem) return problem;
    const node = document.activeElement || document.body;
    for (const event of ["keydown", "keypress", "keyup"]) press(node, event, "Enter");
    return "";
  }
  const at = action.x !== undefined ? document.elementFromPoint(action.x, action.y) : null;
  const node = at || (action.index === undefined ? null : shown[action.index]);
  if (action.action_type === "scroll") return scroll(node, action.direction);
  if (!node || !node.isConnected) return "the element is no longer on the page";
  if (node.disabled) return "the element is disabled";
  if (action.action_type === "input_text") {
    if (node.matches(SLIDERS)) return slide(node, action.text);
    if (!(node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement)
        || node.readOnly || PUSH_TYPES.has(node.type)) return "no text can be typed there";
    type(node, action.clear_text === false ? node.value + action.text : action.text);
    return "";
  }
  if (action.action_type === "select") return select(node, action.text);
  const [x, y] = at ? [action.x, action.y] : centre(node);
  return click(node, x, y, action.action_type === "double_tap" ? 2 : 1);
};

// ---- where mouse and keyboard act (input.py sends the events) --------------------------------

// A point of the screen, or why there is none.
const spot = (index, x, y) => {
  if (x !== undefined) return [x, y];
  const node = shown[index];
  if (!node || !node.isConnected) return "the element is no longer on the page";
  if (node.disabled) return "the element is disabled";
  node.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  const [left, top] = centre(node);
  const inside = left >= 0 && top >= 0 && left < window.innerWidth && top < window.innerHeight;
  return inside ? [left, top] : "the element cannot be brought into view";
};

// One length of itself is how far a thing goes that is dragged without a destination.
const beside = (index, direction, [x, y]) => {
  const box = index === undefined ? { width: SMALL_DRAG, height: SMALL_DRAG }
    : shown[index].getBoundingClientRect();
  const [dx, dy] = AHEAD[direction];
  return [x + dx * box.width, y + dy * box.height];
};

// A sortable list makes room once the mouse has passed the middle of the next item.
const beyond = ([x, y], [endX, endY]) => {
  const far = Math.hypot(endX - x, endY - y) || 1;
  return [endX + PAST_MIDDLE * (endX - x) / far, endY + PAST_MIDDLE * (endY - y) / far];
};

const locate = (action) => {
  acting = true;
  if (action.action_type === "keyboard_enter") {
    const note = action.index === undefined ? "" : takeKeys(shown[action.index]);
    return JSON.stringify({ note });
  }
  const at = spot(action.index, action.x, action.y);
  let to = null;
  if (typeof at !== "string" && action.action_type === "swipe") {
    const placed = action.to_index !== undefined || action.to_x !== undefined;
    to = placed ? spot(action.to_index, action.to_x, action.to_y)
      : beside(action.index, action.direction, at);
    if (action.to_index !== undefined && typeof to !== "string") to = beyond(at, to);
  }
  const problem = [at, to].find((found) => typeof found === "string") || "";
  return JSON.stringify(problem ? { note: problem } : { at, to, note: "" });
};

// A picture has no height before it is there, and then the screen does not tell it.
const allPictures = () => {
  const missing = [...document.images].filter((picture) => !picture.complete);
  const there = Promise.allSettled(missing.map((picture) => picture.decode()));
  return missing.length && Promise.race([there, sleep(READY_MS)]);
};

// Until what an act started has happened; a page that goes on and on is left after a while.
const settled = async () => {
  const start = Date.now();
  const within = (limit) => Date.now() < start + limit;
  await sleep(0);
  while ((awaited.size > 0 && within(ACT_LIMIT_MS)) || (selectionWaits() && within(SELECTION_MS))) {
    await sleep(SETTLE_MS);
  }
  selectionTold = selectionNow(); // a selection whose text was removed may change without an event
};

const ready = async () => {
  await settled();
  await allPictures();
  acting = false;
};

// The screen after all animations have ended; one that goes on and on is left after a while.
const look = async (note) => {
  await ready();
  if (busy()) {
    const limit = Date.now() + MOVE_MS;
    while (busy() && Date.now() < limit) await sleep(FRAME_MS);
    await ready();
  }
  return observe(note);
};

const act = async (action) => {
  let note = "";
  acting = true;
  if (action.action_type === "wait") await sleep(WAIT_MS);
  else note = perform(action);
  return look(note);
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

// What a mouse and a keyboard leave behind: where the tab key goes on from, which outlives the
// focus, and a page that was dragged sideways.
const resetInput = () => {
  window.scrollTo(0, 0);
  document.body.tabIndex = -1;
  document.body.focus({ preventScroll: true });
  document.body.removeAttribute("tabindex");
};

const reset = async (seed, touched) => {
  stopDelays();
  await fetched;
  core.EPISODE_MAX_TIME = NO_CLOCK_MS;
  core.endEpisode(0);
  Math.seedrandom(seed);
  core.setDataMode("train");
  if (document.activeElement && document.activeElement !== document.body) {
    document.activeElement.blur();
  }
  if (touched || readFrom) resetInput();
  readFrom = null;
  core.startEpisodeReal();
  const limit = Date.now() + READY_MS;
  while (!WOB_TASK_READY && Date.now() < limit) await sleep(10);
  if (!WOB_TASK_READY) throw new Error(`the page is not ready after ${READY_MS} ms`);
  return look("");
};

document.addEventListener("DOMContentLoaded", stopDelays);

// Nor has an icon that a style sheet draws. No one can see when that one is there, so these
// pictures are fetched with the page, before an episode shows them.
const pictures = [];
let fetched = Promise.resolve();

const fetchPictures = () => {
  const own = [...document.querySelectorAll("style")].map((node) => node.textContent).join(" ");
  const named = [...own.matchAll(/\bcontent\s*:\s*url\(\s*["']?([^"')]+)/g)];
  for (const url of new Set(named.map((match) => match[1]))) {
    const picture = new Image();
    picture.src = url;
    pictures.push(picture);
  }
  fetched = Promise.allSettled(pictures.map((picture) => picture.decode()));
};
document.addEventListener("DOMContentLoaded", fetchPictures);

// The harness's furniture stands beside the page or goes before anyone looks, and costs a layout
// each time it changes.
const hideFurniture = () => {
  const sheet = new CSSStyleSheet();
  const names = [...FURNITURE].filter((id) => id !== "query").map((id) => `#${id}`);
  sheet.replaceSync(`${names.join(", ")} { display: none !important; }`);
  document.adoptedStyleSheets.push(sheet);
};
document.addEventListener("DOMContentLoaded", hideFurniture);

// Leaving the page would end the document, and the reward with it. These listeners come last:
// the page's own handlers have run.
window.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[href]");
  if (link && !/^(#|javascript:)/i.test(link.getAttribute("href"))) event.preventDefault();
});

Object.defineProperty(window, "swarmUi", { value: Object.freeze({ reset, act, locate, look }) });
