// Who said what to whom: the graph unrolled over rounds (rows), with a box for every message.
const BOX = { height: 48, margin: 34 };

// Boxes as wide as the words need, and narrower where all of them can be seen only then.
const boxes = (columns) => {
  const page = document.querySelector("#viewer article").clientWidth;
  const beside = document.documentElement.clientWidth > 720 ? 304 : 0; // the screen, as in the style sheet
  const each = (page - beside - BOX.margin) / columns;
  const across = each < 142 ? 8 : 14;
  return { width: between(Math.floor(each - across), 96, 128), across };
};

// How many letters find room in so many pixels.
const letters = (pixels, bold) => Math.floor(pixels / (bold ? 6.9 : 6.5));

// Nodes that speak after the last round, such as a vote, stand in a row of their own below.
const AFTER = Infinity;
const rowOf = (m, now) => (now.agents.includes(m.sender) ? m.round : AFTER);

const layout = (now) => {
  const agents = inOrder(now.agents, now.edges);
  const others = [...new Set(now.messages.map((m) => m.sender))].filter((name) => !agents.includes(name));
  const rows = [...new Set(now.messages.map((m) => rowOf(m, now)))].sort((a, b) => a - b);
  const place = (name) => (agents.includes(name) ? agents.indexOf(name)
    : others.indexOf(name) + Math.max(0, agents.length - others.length) / 2);
  const spans = now.messages.flatMap((m) => m.heard.map((k) => now.messages[k])
    .filter((other) => other && rowOf(other, now) === rowOf(m, now))
    .map((other) => Math.abs(place(other.sender) - place(m.sender))));
  const rise = 14 + 12 * Math.min(8, Math.max(0, ...spans));
  const columns = Math.max(agents.length, others.length);
  const { width, across } = boxes(columns);
  const column = (name) => BOX.margin + place(name) * (width + across);
  const row = (which) => rise + rows.indexOf(which) * (BOX.height + rise + 14);
  return { place, rows, column, row, box: width, line: (m) => row(rowOf(m, now)), same: (a, b) => rowOf(a, now) === rowOf(b, now),
    width: BOX.margin + columns * (width + across), height: row(rows.at(-1)) + BOX.height + 6 };
};

const travelled = (from, to, plan, chosen) => {
  const [x1, x2] = [plan.column(from.sender) + plan.box / 2, plan.column(to.sender) + plan.box / 2];
  const kind = chosen ? "talk strong" : "talk";
  const says = told(`${to.sender} in round ${to.round + 1} heard ${from.sender} in round ${from.round + 1}`);
  if (plan.same(from, to)) {
    const way = x2 > x1 ? 1 : -1;
    const span = Math.abs(plan.place(from.sender) - plan.place(to.sender));
    const line = arc(x1 + way * 12, x2 - way * 12, plan.line(to), 8 + 12 * Math.min(8, span), kind);
    line.append(says);
    return line;
  }
  const own = from.sender === to.sender ? " own" : "";
  return draw("g", { class: kind + own }, says, draw("line", { class: "arc",
    x1, y1: plan.line(from) + BOX.height, x2, y2: plan.line(to) }));
};

const proposal = (m) => (m.error ? "failed" : m.action || short(m.text.trim(), 60) || "no proposal");

const messageBox = (m, k, plan, selected, select) => {
  const kinds = ["box", m.error ? "wrong" : "", m.chosen ? "agreed" : "", k === selected ? "selected" : "", m.credit === null ? "" : "scored"];
  const x = plan.column(m.sender);
  const y = plan.line(m);
  const box = draw("g", { class: kinds.filter(Boolean).join(" "), tabindex: 0, role: "button",
    "aria-label": `${m.sender}, round ${m.round + 1}: ${proposal(m)}`, "aria-pressed": k === selected, "data-message": k },
  told(`${m.sender}, round ${m.round + 1}: ${proposal(m)}`),
  draw("rect", { x, y, width: plan.box, height: BOX.height, rx: 8 }),
  draw("text", { x: x + 8, y: y + 19, class: "who" }, short(m.sender, letters(plan.box - (m.credit === null ? 16 : 44), true))),
  m.credit === null ? null : draw("text", { x: x + plan.box - 8, y: y + 19, class: "score" }, m.credit.toFixed(2)),
  draw("text", { x: x + 8, y: y + 37 }, short(proposal(m), letters(plan.box - 12, false))));
  if (m.credit !== null) box.style.setProperty("--share", percent(m.credit));
  box.addEventListener("click", () => select(k));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    select(k);
  });
  return box;
};

const talkPicture = (now, selected, select) => {
  const plan = layout(now);
  const picture = draw("svg", { viewBox: `0 0 ${plan.width} ${plan.height}`, class: "arcs talkative", role: "group",
    width: plan.width, height: plan.height, "aria-label": "Messages by round and agent" });
  plan.rows.forEach((row) => picture.append(
    draw("text", { x: 0, y: plan.row(row) + 28, class: "row" }, row === AFTER ? "end" : `r${row + 1}`)));
  now.messages.forEach((m, k) => m.heard.forEach((from) => {
    const other = now.messages[from];
    if (other) picture.append(travelled(other, m, plan, k === selected || from === selected));
  }));
  now.messages.forEach((m, k) => picture.append(messageBox(m, k, plan, selected, select)));
  return make("div", "wide", picture);
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
    make("div", "round", row === AFTER ? "After the last round" : `Round ${row + 1}`),
    row === AFTER ? null : verdict(now, row), make("div", "said", ...cards.filter(Boolean)),
    prompted(now.messages[selected]));
};
