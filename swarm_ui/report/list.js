// The list of episodes with its filters. Only a page of it is in the document at a time.
const PAGE = 100;
const MARKS = { solved: "✓", failed: "✗", masked: "–" };

// The filters, by their names in the address, with what they are called.
const FILTERS = { outcome: ["All outcomes", "Outcome"], set: ["All sets", "Set"], task: ["All tasks", "Task"], q: ["", "Text"] };

const tally = (entries, key) => {
  const counts = new Map();
  for (const entry of entries) counts.set(entry[key], (counts.get(entry[key]) || 0) + 1);
  return counts;
};

class EpisodeList {
  // `open(number)` shows an episode; `changed(typing)` hears of filters that a person changed.
  constructor(entries, open, changed) {
    Object.assign(this, { entries, found: entries, current: -1, shown: PAGE, open, changed });
    this.wanted = Object.fromEntries(Object.keys(FILTERS).map((key) => [key, ""]));
    this.search = make("input", "");
    Object.assign(this.search, { type: "search", placeholder: "Goal, task, policy …" });
    this.search.setAttribute("aria-label", "Find episodes by text");
    this.search.addEventListener("input", () => this.filter("q", this.search.value, true));
    this.controls = { q: this.search, outcome: this.select("outcome"), set: this.select("set"), task: this.select("task") };
    this.count = make("p", "note", "");
    this.count.setAttribute("role", "status");
    this.clear = button("Clear filters", "Show all episodes", () => this.cleared());
    this.items = make("ol", "entries");
    this.node = make("aside", "list", make("div", "filters", ...Object.values(this.controls)),
      make("div", "counts", this.count, this.clear), this.items);
    this.draw();
  }

  select(key) {
    const values = [...tally(this.entries, key).keys()];
    const node = choice(FILTERS[key][1], ["", ...values].map((value) => [value, value]), (value) => this.filter(key, value));
    node.hidden = values.length < 2;
    return node;
  }

  // Whether an entry fits the filters, but for one of them.
  fits(entry, but) {
    const { outcome, set, task, q } = this.wanted;
    return (but === "outcome" || !outcome || entry.outcome === outcome) && (but === "set" || !set || entry.set === set)
      && (but === "task" || !task || entry.task === task) && (!q.trim() || entry.words.includes(q.toLowerCase().trim()));
  }

  filter(key, value, typing = false) {
    this.apply({ ...this.wanted, [key]: value });
    this.changed(typing);
  }

  cleared() {
    this.apply({});
    this.changed(false);
  }

  // Takes over filters, such as those of the address; missing ones are off.
  apply(wanted) {
    for (const key of Object.keys(FILTERS)) {
      this.wanted[key] = wanted[key] || "";
      if (this.controls[key].value !== this.wanted[key]) this.controls[key].value = this.wanted[key];
    }
    this.found = this.entries.filter((entry) => this.fits(entry));
    this.shown = PAGE;
    this.draw();
    this.mark(this.current);
  }

  // The filters as they stand in the address.
  query() {
    return new URLSearchParams(Object.entries(this.wanted).filter(([, value]) => value)).toString();
  }

  toggleFailed() {
    this.filter("outcome", this.wanted.outcome === "failed" ? "" : "failed");
  }

  // The episode so many places on from the current one, among those that are found.
  beside(places) {
    const at = this.found.findIndex((e) => e.number === this.current);
    const next = at < 0 ? 0 : at + places;
    return this.found[next] ? this.found[next].number : this.current;
  }

  item(entry) {
    const mark = make("span", `outcome ${entry.outcome}`, MARKS[entry.outcome]);
    const small = [entry.set, entry.task, `seed ${entry.seed}`, `${entry.steps} ${entry.steps === 1 ? "step" : "steps"}`].filter(Boolean).join(" · ");
    const node = button("", `Episode ${entry.number + 1}, ${entry.outcome}`, () => this.open(entry.number));
    node.append(mark, make("span", "", make("span", "", entry.goal || entry.task), make("small", "", small)));
    node.setAttribute("aria-current", entry.number === this.current);
    node.dataset.episode = entry.number;
    return make("li", "", node);
  }

  // Each menu counts the episodes that its choices would show, with the other filters as they are.
  recount(key) {
    const counts = tally(this.entries.filter((entry) => this.fits(entry, key)), key);
    const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
    for (const option of this.controls[key].options) {
      option.textContent = option.index ? `${option.value || "(none)"} (${counts.get(option.value) || 0})` : `${FILTERS[key][0]} (${all})`;
    }
  }

  summary() {
    const [found, all] = [this.found.length, this.entries.length].map((count) => count.toLocaleString("en"));
    const outcomes = tally(this.found, "outcome");
    const parts = Object.keys(MARKS).filter((outcome) => outcomes.has(outcome)).map((outcome) => `${outcomes.get(outcome).toLocaleString("en")} ${outcome}`);
    return `${found} of ${all} episode${this.entries.length === 1 ? "" : "s"}${parts.length ? `: ${parts.join(", ")}` : ""}`;
  }

  draw() {
    for (const key of ["outcome", "set", "task"]) this.recount(key);
    this.count.textContent = this.summary();
    this.clear.hidden = !this.query();
    const rows = this.found.slice(0, this.shown).map((entry) => this.item(entry));
    const left = this.found.length - rows.length;
    if (left > 0) {
      rows.push(make("li", "more", button(`${left} more …`, "Show more episodes", () => {
        this.shown += PAGE;
        this.draw();
      })));
    }
    if (!rows.length) rows.push(make("li", "empty", this.nothing()));
    this.items.replaceChildren(...rows);
  }

  // Why the list is empty.
  nothing() {
    const asked = Object.entries(this.wanted).filter(([, value]) => value).map(([key, value]) => `${FILTERS[key][1].toLowerCase()} “${value}”`);
    return `No episode has ${asked.join(" and ")}.`;
  }

  mark(number) {
    this.current = number;
    const at = this.found.findIndex((e) => e.number === number);
    if (at >= this.shown) {
      this.shown = at + PAGE;
      this.draw();
    }
    for (const node of this.items.querySelectorAll("[data-episode]")) {
      const here = Number(node.dataset.episode) === number;
      node.setAttribute("aria-current", here);
      if (here) this.show(node);
    }
  }

  // Scrolls the list only, never the page.
  show(node) {
    const [row, box] = [node.getBoundingClientRect(), this.items.getBoundingClientRect()];
    if (row.top < box.top) this.items.scrollTop -= box.top - row.top;
    else if (row.bottom > box.bottom) this.items.scrollTop += row.bottom - box.bottom;
  }
}
