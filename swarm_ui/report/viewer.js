// The episode viewer: where one is, the keys, the address (#episode/step) and the drawing of it.
const KEYS = [["← →", "step"], ["Home End", "first, last step"], ["j k", "next, previous episode"],
  ["[ ]", "round"], ["f", "failed episodes only"], ["/", "search"]];

class Viewer {
  constructor(root, entries) {
    Object.assign(this, { entries, number: -1, step: 0, selected: 0, episode: null });
    this.list = new EpisodeList(entries, (number) => this.open(number, 0));
    this.head = make("div", "");
    this.stage = make("div", "");
    this.back = button("←", "Step back", () => this.go(this.step - 1));
    this.on = button("→", "Step on", () => this.go(this.step + 1));
    this.where = make("span", "", "");
    this.where.setAttribute("role", "status");
    this.dots = make("div", "dots");
    const keys = make("p", "note keys", ...KEYS.flatMap(([key, what]) => [make("kbd", "", key), ` ${what}  `]));
    const bar = make("div", "bar", this.back, this.where, this.on, this.dots);
    root.append(this.list.node, make("article", "", this.head, bar, this.stage, keys));
    root.dataset.ready = "";
  }

  // `number` from 0. Answers that come late, after another episode was asked for, are dropped.
  async open(number, step) {
    const entry = this.entries[number];
    if (!entry) return;
    const same = number === this.number && this.episode;
    this.number = number;
    if (!same) {
      this.episode = null;
      const episode = await readEpisode(entry);
      if (this.number !== number) return;
      this.episode = episode;
    }
    this.list.mark(number);
    this.header(entry);
    this.go(step);
  }

  go(step) {
    if (!this.episode) return;
    const { steps } = this.episode;
    this.step = between(step, 0, Math.max(0, steps.length - 1));
    const now = steps[this.step];
    // The last agent's message that carried the decision, or simply the last message.
    const chosen = now ? now.messages.findLastIndex((m) => m.chosen && now.agents.includes(m.sender)) : -1;
    this.selected = chosen < 0 ? Math.max(0, (now ? now.messages.length : 0) - 1) : chosen;
    this.draw();
    const address = `#${this.number + 1}/${this.step + 1}`;
    if (location.hash !== address) history.replaceState(null, "", address);
  }

  round(places) {
    const now = this.episode && this.episode.steps[this.step];
    if (!now || !now.messages.length) return;
    const rows = [...new Set(now.messages.map((m) => rowOf(m, now)))].sort((a, b) => a - b);
    const { sender } = now.messages[this.selected];
    const wanted = rows[rows.indexOf(rowOf(now.messages[this.selected], now)) + places];
    const there = now.messages.findIndex((m) => rowOf(m, now) === wanted && m.sender === sender);
    const any = there < 0 ? now.messages.findIndex((m) => rowOf(m, now) === wanted) : there;
    if (any >= 0) this.select(any);
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
    this.head.replaceChildren(
      make("h3", "goal", entry.goal || entry.task, " ", make("span", `outcome ${entry.outcome}`, `${MARKS[entry.outcome]} ${entry.outcome}`)),
      make("p", "note", facts),
      ...(this.episode.fault ? [make("p", "error", this.episode.fault)] : []));
    this.dots.replaceChildren(...this.episode.steps.map((step, k) => button("", `Step ${k + 1}`, () => this.go(k))));
  }

  draw() {
    const { steps } = this.episode;
    const now = steps[this.step];
    this.back.disabled = this.step <= 0;
    this.on.disabled = this.step >= steps.length - 1;
    this.where.textContent = steps.length ? `step ${this.step + 1} of ${steps.length}` : "no steps were recorded";
    [...this.dots.children].forEach((dot, k) => dot.setAttribute("aria-current", k === this.step));
    this.stage.replaceChildren(...(now ? [this.scene(now)] : []));
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
    return make("div", "scene", screen(now), words);
  }

  // Whether the key meant something.
  pressed(key) {
    const acts = {
      ArrowLeft: () => this.go(this.step - 1),
      ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0),
      End: () => this.go(Infinity),
      j: () => this.open(this.list.beside(1), 0),
      k: () => this.open(this.list.beside(-1), 0),
      "[": () => this.round(-1),
      "]": () => this.round(1),
      f: () => this.list.toggleFailed(),
      "/": () => this.list.search.focus(),
    };
    if (!Object.hasOwn(acts, key)) return false;
    acts[key]();
    return true;
  }

  async address() {
    const found = /^#(\d+)(?:\/(\d+))?$/.exec(location.hash);
    if (!found) return false;
    await this.open(Number(found[1]) - 1, Number(found[2] || 1) - 1);
    return this.number >= 0;
  }
}

const startViewer = async () => {
  const root = document.getElementById("viewer");
  if (!root) return;
  const viewer = new Viewer(root, await readIndex());
  const linked = await viewer.address();
  if (linked) document.getElementById("episodes").scrollIntoView();
  else await viewer.open(0, 0);
  window.addEventListener("hashchange", async () => {
    if (await viewer.address()) root.scrollIntoView();
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
