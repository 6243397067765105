// The list of episodes with its filters. Only a page of it is in the document at a time.
const PAGE = 100;
const MARKS = { solved: "✓", failed: "✗", masked: "–" };

const counted = (name, entries, key) => {
  const counts = new Map();
  for (const entry of entries) counts.set(entry[key], (counts.get(entry[key]) || 0) + 1);
  const options = [...counts].map(([value, count]) => [value, `${value || "(none)"} (${count})`]);
  return [["", `${name} (${entries.length})`], ...options];
};

class EpisodeList {
  constructor(entries, open) {
    this.entries = entries;
    this.found = entries;
    this.current = -1;
    this.shown = PAGE;
    this.open = open;
    this.wanted = { outcome: "", set: "", task: "", words: "" };
    this.search = make("input", "");
    Object.assign(this.search, { type: "search", placeholder: "Goal, task, policy …" });
    this.search.setAttribute("aria-label", "Find episodes by text");
    this.search.addEventListener("input", () => this.filter("words", this.search.value.toLowerCase().trim()));
    this.outcome = this.select("outcome", "All outcomes", "Outcome");
    const filters = make("div", "filters", this.search, this.outcome,
      this.select("set", "All sets", "Set"), this.select("task", "All tasks", "Task"));
    this.count = make("p", "note", "");
    this.count.setAttribute("role", "status");
    this.items = make("ol", "entries");
    this.node = make("aside", "list", filters, this.count, this.items);
    this.draw();
  }

  select(key, all, label) {
    const options = counted(all, this.entries, key);
    const node = choice(label, options, (value) => this.filter(key, value));
    node.hidden = options.length < 3;
    return node;
  }

  filter(key, value) {
    this.wanted[key] = value;
    const { outcome, set, task, words } = this.wanted;
    this.found = this.entries.filter((e) => (!outcome || e.outcome === outcome) && (!set || e.set === set)
      && (!task || e.task === task) && (!words || e.words.includes(words)));
    this.shown = PAGE;
    this.draw();
  }

  toggleFailed() {
    this.outcome.value = this.wanted.outcome === "failed" ? "" : "failed";
    this.filter("outcome", this.outcome.value);
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

  draw() {
    this.count.textContent = `${this.found.length.toLocaleString("en")} of ${this.entries.length.toLocaleString("en")} episodes`;
    const rows = this.found.slice(0, this.shown).map((entry) => this.item(entry));
    const left = this.found.length - rows.length;
    if (left > 0) {
      rows.push(make("li", "more", button(`${left} more …`, "Show more episodes", () => {
        this.shown += PAGE;
        this.draw();
      })));
    }
    this.items.replaceChildren(...rows);
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
