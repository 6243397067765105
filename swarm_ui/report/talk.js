// Who said what to whom: a box for every message, where the page's data place it, and the cards of
// one round.

// Nodes that speak after the last round, such as a vote, come after all rounds.
const AFTER = Infinity;
const rowOf = (m, now) => (now.agents.includes(m.sender) ? m.round : AFTER);
const rowName = (row) => (row === AFTER ? "After the last round" : `Round ${row + 1}`);

const proposal = (m) => (m.error ? "failed" : m.action || short(m.text.trim(), 60) || "no proposal");

const messageBox = (m, k, selected, select) => {
  const kinds = ["box", m.error ? "wrong" : "", m.chosen ? "agreed" : "", k === selected ? "selected" : "", m.credit === null ? "" : "scored"];
  const box = button("", `${m.sender}, round ${m.round + 1}: ${proposal(m)}`, () => select(k));
  box.className = kinds.filter(Boolean).join(" ");
  box.setAttribute("aria-pressed", k === selected);
  box.dataset.message = k;
  box.append(make("b", "", m.sender), make("small", "", m.credit === null ? "" : m.credit.toFixed(2)), make("span", "", proposal(m)));
  ["left", "top", "width", "height"].forEach((side, n) => { box.style[side] = `${m.box[n]}px`; });
  if (m.credit !== null) box.style.setProperty("--share", percent(m.credit));
  return box;
};

const talkPicture = (now, selected, select) => {
  const [width, height] = now.size;
  const lines = draw("svg", { width, height, "aria-hidden": true }, draw("marker", { id: "head", viewBox: "0 0 8 8",
    refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" })));
  now.messages.forEach((m, k) => m.heard.forEach((from, n) => {
    const own = now.messages[from]?.sender === m.sender ? " own" : "";
    const strong = k === selected || from === selected ? " strong" : "";
    lines.append(draw("path", { class: `line${own}${strong}`, d: m.lines[n] }));
  }));
  const rounds = new Map(now.messages.filter((m) => now.agents.includes(m.sender)).map((m) => [m.round, m.box[0]]));
  if (rounds.size > 1) rounds.forEach((x, round) => lines.append(draw("text", { x, y: 28 }, `round ${round + 1}`)));
  const boxes = now.messages.map((m, k) => messageBox(m, k, selected, select));
  const talk = make("div", "talk", lines, ...boxes);
  talk.style.width = `${width}px`;
  return make("div", "wide", talk);
};

const heardBy = (m, now) => m.heard.map((k) => {
  const other = now.messages[k];
  if (!other) return String(k);
  return other.round === m.round ? other.sender : `${other.sender} in round ${other.round + 1}`;
}).join(", ");

const messageCard = (m, now, selected) => {
  const credit = m.credit === null ? "no credit" : `credit ${m.credit.toFixed(2)}`;
  const cost = [m.adapter, m.tokens[0] + m.tokens[1] ? `${m.tokens[0]} + ${m.tokens[1]} tokens` : "",
    m.seconds ? `${m.seconds.toFixed(2)} s` : ""].filter(Boolean).join(" · ");
  const card = make("div", `message${m.credit === null ? "" : " scored"}${selected ? " selected" : ""}`,
    make("div", "who", make("span", "", m.sender), make("small", "", credit)),
    m.action ? make("div", "", m.action, m.chosen ? make("span", "tag", "chosen") : null) : null,
    m.error ? make("div", "error", m.error) : null,
    m.heard.length ? make("small", "", `heard ${heardBy(m, now)}`) : null,
    m.left_out ? make("small", "", `its prompt leaves out ${m.left_out}`) : null,
    m.text ? make("pre", "", m.text) : null,
    numbersNote(m, now),
    cost ? make("small", "", cost) : null);
  if (m.credit !== null) card.style.setProperty("--share", percent(m.credit));
  return card;
};

const ballot = (now) => {
  if (!now.ballot.length) return null;
  const rows = make("div", "ballot");
  const most = Math.max(...now.ballot.map((vote) => Math.abs(vote.weight ?? 0)), 1e-9);
  const agents = now.messages.filter((m) => now.agents.includes(m.sender));
  const last = Math.max(...agents.map((m) => m.round));
  for (const vote of now.ballot) {
    const bar = make("div", "weight");
    bar.style.width = percent((vote.weight ?? 0) / most);
    const voters = agents.filter((m) => m.round === last && m.action === vote.action).map((m) => m.sender);
    rows.append(make("span", "", vote.action, voters.length ? make("small", "", ` ${voters.join(", ")}`) : null),
      bar, make("span", "", vote.weight === null ? "–" : String(Number(vote.weight.toPrecision(3)))));
  }
  return make("section", "", make("h4", "", "Votes"), rows);
};

// What the critic says about a round, and who it is.
const verdict = (now, round) => {
  const why = now.why[round] || "";
  if (!why && !now.critic) return null;
  const who = `Credit by ${now.critic || "an unnamed critic"}${why ? ": " : ""}`;
  return make("p", "why", make("b", "", who), why);
};

const talk = (now, selected, select) => {
  if (!now.messages.length) return make("p", "note", "No messages were recorded.");
  const row = rowOf(now.messages[selected], now);
  const cards = now.messages.map((m, k) => (rowOf(m, now) === row ? messageCard(m, now, k === selected) : null));
  return make("section", "", make("h4", "", "Messages"),
    now.messages.length > 1 ? talkPicture(now, selected, select) : null,
    make("div", "round", rowName(row)),
    row === AFTER ? null : verdict(now, row), make("div", "said", ...cards.filter(Boolean)),
    prompted(now.messages[selected]));
};
