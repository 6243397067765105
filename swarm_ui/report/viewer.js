// The episode viewer: where one is, the keys, the address (#episode/step) and the drawing of it.
const KEYS = [["← →", "step"], ["Home End", "first, last step"], ["j k", "next, previous episode"],
  ["v", "screen, agent’s view"], ["f", "failed episodes only"], ["/", "search"]];

const LONG = 600; // characters of a goal that gets a box of its own

// What the left side of a step shows.
const LOOKS = { screen: () => "Screen", view: (m) => `${short(m?.sender ?? "agent", 16)}'s view` };

// The episode, step and filters of the address; null where the address is of another kind.
const readAddress = () => {
  const found = /^#(?:(\d+)(?:\/(\d+))?)?(?:\?(.*))?$/.exec(location.hash);
  if (!found || (found[1] === undefined && found[3] === undefined)) return null;
  const number = found[1] === undefined ? null : Number(found[1]) - 1;
  return { number, step: Number(found[2] || 1) - 1, filters: Object.fromEntries(new URLSearchParams(found[3] || "")) };
};

class Viewer {
  constructor(root, entries) {
    Object.assign(this, { entries, number: -1, step: 0, selected: 0, episode: null, look: "screen" });
    this.list = new EpisodeList(entries, (number) => this.open(number, 0, { push: true }), (typing) => this.filtered(typing));
    this.head = make("div", "");
    this.stage = make("div", "");
    this.back = button("←", "Step back", () => this.go(this.step - 1));
    this.on = button("→", "Step on", () => this.go(this.step + 1));
    this.where = make("span", "", "");
    this.where.setAttribute("role", "status");
    this.film = new Film((step) => this.go(step));
    this.replay = new ReplayButton();
    const keys = make("p", "note keys", ...KEYS.flatMap(([key, what]) => [make("kbd", "", key), ` ${what}  `]));
    this.bar = make("div", "bar", this.back, this.where, this.on, this.replay.button);
    root.append(this.list.node, make("article", "", this.head, this.bar, this.replay.line, this.film.node, this.film.note, this.stage, keys));
    root.dataset.ready = "";
  }

  // `number` from 0. Answers that come late, after another episode was asked for, are dropped.
  // `push`: going back in the browser returns to the episode before. `quiet`: the address stays.
  async open(number, step, { push = false, quiet = false } = {}) {
    const entry = this.entries[number];
    if (!entry) return;
    const same = number === this.number && this.episode;
    const other = this.number >= 0 && number !== this.number;
    this.number = number;
    if (!same) {
      this.episode = null;
      const episode = await readEpisode(entry);
      if (this.number !== number) return;
      this.episode = episode;
      this.header(entry);
      this.film.show(episode.steps);
    }
    this.list.mark(number);
    this.go(step, { push: push && other, quiet });
  }

  go(step, { push = false, quiet = false } = {}) {
    if (!this.episode) return;
    const { steps } = this.episode;
    this.step = between(step, 0, Math.max(0, steps.length - 1));
    const now = steps[this.step];
    // The last agent's message that carried the decision, or simply the last message.
    const chosen = now ? now.messages.findLastIndex((m) => m.chosen && now.agents.includes(m.sender)) : -1;
    this.selected = chosen < 0 ? Math.max(0, (now ? now.messages.length : 0) - 1) : chosen;
    this.draw();
    if (!quiet) this.write(push);
  }

  write(push, state = null) {
    const place = this.number < 0 ? "" : `${this.number + 1}/${this.step + 1}`;
    const filters = this.list.query();
    const address = `#${place}${filters ? `?${filters}` : ""}`;
    if (location.hash === address) return;
    if (push) history.pushState(state, "", address);
    else history.replaceState(state, "", address);
  }

  // A person changed the filters. All that is typed at one go is one entry of the history.
  filtered(typing) {
    this.write(!(typing && history.state?.typing), typing ? { typing: true } : null);
    if (this.number < 0 && this.list.found.length) this.open(this.list.found[0].number, 0);
  }

  select(message) {
    this.selected = message;
    const held = this.stage.contains(document.activeElement);
    this.draw();
    if (held) this.stage.querySelector(`[data-message="${message}"]`)?.focus({ preventScroll: true });
  }

  header(entry) {
    const facts = [`episode ${entry.number + 1}`, this.episode.environment, entry.set, entry.task, `seed ${entry.seed}`, entry.policy,
      this.episode.seconds ? `${this.episode.seconds.toFixed(1)} s` : ""].filter(Boolean).join(" · ");
    const goal = entry.goal || entry.task;
    this.head.replaceChildren(
      make("h3", "goal", make("span", goal.length > LONG ? "long" : "", goal), " ", make("span", `outcome ${entry.outcome}`, `${MARKS[entry.outcome]} ${entry.outcome}`)),
      make("p", "note", facts),
      ...(this.episode.fault ? [make("p", "error", this.episode.fault)] : []));
  }

  draw() {
    const { steps } = this.episode;
    const now = steps[this.step];
    this.back.disabled = this.step <= 0;
    this.on.disabled = this.step >= steps.length - 1;
    this.where.textContent = steps.length ? `step ${this.step + 1} of ${steps.length}` : "no steps were recorded";
    this.bar.hidden = false;
    this.film.mark(this.step);
    this.replay.show(this.entries[this.number], this.step);
    this.stage.replaceChildren(now ? this.scene(now) : make("p", "empty", "This episode ended before its first decision: there is nothing to show."));
    this.reveal();
  }

  // Scrolls the graph sideways, where it is wider than the screen, to the chosen message.
  reveal() {
    const box = this.stage.querySelector(".box.selected");
    const wide = box?.closest(".wide");
    if (!wide || wide.scrollWidth <= wide.clientWidth) return;
    const [at, frame] = [box.getBoundingClientRect(), wide.getBoundingClientRect()];
    wide.scrollLeft += at.left - frame.left - (frame.width - at.width) / 2;
  }

  scene(now) {
    const decided = make("p", "decision", "Decision: ", make("b", "", now.decision || "none"));
    if (now.executed) decided.append("; executed instead: ", make("b", "", now.executed));
    const end = [now.reward ? `reward ${Number(now.reward.toPrecision(3))}` : "", now.end].filter(Boolean).join(", ");
    if (end) decided.append(` (${end})`);
    const more = [now.undecided, now.note, now.past.length ? `Before: ${now.past.join("; ")}` : ""];
    const words = make("div", "", decided, ...more.filter(Boolean).map((line) => make("p", "note", line)),
      ballot(now), talk(now, this.selected, (k) => this.select(k)));
    return make("div", "scene", this.seen(now), words);
  }

  // The left side: the screen, or what the selected agent saw of it.
  seen(now) {
    const m = now.messages[this.selected];
    const view = () => (m ? agentView(m, now) : make("p", "note", "No messages were recorded."));
    const tabs = Object.entries(LOOKS).map(([look, name]) => {
      const node = button(name(m), name(m), () => this.turn(look));
      node.setAttribute("aria-pressed", look === this.look);
      node.dataset.look = look;
      return node;
    });
    return make("div", "seen", make("div", "looks", ...tabs), this.look === "screen" ? screen(now) : view());
  }

  turn(look) {
    if (!this.episode) return;
    this.look = look;
    const held = this.stage.contains(document.activeElement);
    this.draw();
    if (held) this.stage.querySelector(`[data-look="${look}"]`)?.focus({ preventScroll: true });
  }

  // Nothing is open: the filters of the address fit no episode, or it names one that is not here.
  nothing(text) {
    Object.assign(this, { number: -1, episode: null });
    this.list.mark(-1);
    this.film.show([]);
    this.bar.hidden = true;
    this.replay.line.hidden = true;
    this.head.replaceChildren();
    this.stage.replaceChildren(make("p", "empty", text));
  }

  // Whether the key meant something.
  pressed(key) {
    const acts = {
      ArrowLeft: () => this.go(this.step - 1),
      ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0),
      End: () => this.go(Infinity),
      j: () => this.open(this.list.beside(1), 0, { push: true }),
      k: () => this.open(this.list.beside(-1), 0, { push: true }),
      v: () => this.turn(this.look === "screen" ? "view" : "screen"),
      f: () => this.list.toggleFailed(),
      "/": () => this.list.search.focus(),
    };
    if (!Object.hasOwn(acts, key)) return false;
    acts[key]();
    return true;
  }

  // Follows the address. False where it is no address of the viewer.
  async address() {
    const wanted = readAddress();
    if (!wanted) return false;
    this.list.apply(wanted.filters);
    const number = wanted.number ?? this.list.found[0]?.number ?? -1;
    if (this.entries[number]) await this.open(number, wanted.step, { quiet: true });
    else this.nothing(wanted.number === null ? this.list.nothing() : `There is no episode ${number + 1} in this file.`);
    return true;
  }
}

const startViewer = async () => {
  const root = document.getElementById("viewer");
  if (!root) return;
  const viewer = new Viewer(root, await readIndex());
  const reveal = () => document.getElementById("episodes").scrollIntoView();
  const linked = await viewer.address();
  if (linked) reveal();
  else await viewer.open(0, 0, { quiet: location.hash !== "" });
  // A link elsewhere on the page leads here. Going back within the viewer does not scroll.
  window.addEventListener("hashchange", async () => {
    const { top, bottom } = root.getBoundingClientRect();
    if (await viewer.address() && (top > innerHeight / 2 || bottom < innerHeight / 4)) reveal();
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
    } else if (viewer.pressed(event.key)) event.preventDefault();
  });
};

startEdges();
startViewer().catch((error) => {
  document.getElementById("viewer").append(make("p", "error", `The episodes cannot be shown: ${error.message}`));
});
