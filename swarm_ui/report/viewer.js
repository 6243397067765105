"use strict";
// Text reaches the page as text nodes only, so nothing that a model or a screen said is markup.
(() => {
  const episodes = JSON.parse(document.getElementById("episodes").textContent);
  const root = document.getElementById("viewer");
  let episode = 0;
  let step = 0;

  const make = (name, className, ...children) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    node.append(...children.filter((child) => child !== null && child !== ""));
    return node;
  };
  const button = (text, label, enabled, act) => {
    const node = make("button", "", text);
    node.type = "button";
    node.disabled = !enabled;
    node.setAttribute("aria-label", label);
    node.addEventListener("click", act);
    return node;
  };

  const go = (toEpisode, toStep) => {
    episode = toEpisode;
    step = Math.max(0, Math.min(toStep, episodes[episode].steps.length - 1));
    draw();
  };

  const controls = (shown) => {
    const choice = make("select", "");
    choice.setAttribute("aria-label", "Episode");
    episodes.forEach((e, i) => {
      const parts = [e.policy, e.task, `seed ${e.seed}`, e.outcome].filter(Boolean);
      const option = make("option", "", parts.join(" · "));
      option.value = i;
      option.selected = i === episode;
      choice.append(option);
    });
    choice.addEventListener("change", () => go(Number(choice.value), 0));
    const last = shown.steps.length - 1;
    const dots = make("div", "dots", ...shown.steps.map((_, i) => {
      const dot = button("", `Step ${i + 1}`, true, () => go(episode, i));
      dot.setAttribute("aria-current", i === step);
      return dot;
    }));
    return make("div", "bar", choice,
      button("←", "Step back", step > 0, () => go(episode, step - 1)),
      make("span", "", `step ${Math.min(step, last) + 1} of ${last + 1}`),
      button("→", "Step on", step < last, () => go(episode, step + 1)), dots);
  };

  const listed = (now) => {
    const list = make("ol", "elements");
    now.elements.forEach((e, i) => {
      const active = !["text", "label", "heading", "image"].includes(e.role);
      const item = make("li", (active ? "act" : "") + (i === now.index ? " chosen" : ""),
        make("span", "i", String(i)),
        make("span", "", e.label || "(no label)",
          e.value ? make("span", "tag", `“${e.value}”`) : null,
          ...e.state.map((s) => make("span", "tag", s))),
        make("span", "role", e.role));
      list.append(item);
    });
    return list;
  };

  const pictured = (now) => {
    const image = make("img", "");
    image.alt = "Screenshot";
    const frame = make("div", "phone", image);
    image.addEventListener("load", () => {
      const chosen = now.elements[now.index];
      if (!chosen || !chosen.bounds) return;
      const [left, top, right, bottom] = chosen.bounds;
      const mark = make("div", "mark");
      const place = { left, top, width: right - left, height: bottom - top };
      for (const [side, pixels] of Object.entries(place)) {
        const whole = side === "left" || side === "width" ? image.naturalWidth : image.naturalHeight;
        mark.style[side] = `${(100 * pixels) / whole}%`;
      }
      frame.append(mark);
    });
    image.src = `data:image/png;base64,${now.png}`;
    return frame;
  };

  const phone = (now) => now.png
    ? make("div", "", pictured(now), make("p", "note", now.app))
    : make("div", "phone", make("div", "title", now.app || "Screen"), listed(now));

  const ballot = (now) => {
    const rows = make("div", "ballot");
    const most = Math.max(...now.ballot.map((b) => Math.abs(b.weight ?? 0)), 1e-9);
    for (const vote of now.ballot) {
      const bar = make("div", "weight");
      bar.style.width = `${(100 * Math.max(0, vote.weight ?? 0)) / most}%`;
      rows.append(make("span", "", vote.action), bar, make("span", "", vote.weight === null ? "–" : String(+vote.weight.toPrecision(3))));
    }
    return rows;
  };

  const message = (m) => {
    const credit = m.credit === null ? "" : `credit ${m.credit.toFixed(2)}`;
    const box = make("div", m.credit === null ? "message" : "message scored",
      make("div", "who", make("span", "", m.sender), make("small", "", credit)),
      m.action ? make("div", "", m.action) : null,
      m.error ? make("div", "error", m.error) : null,
      m.heard.length ? make("small", "", `heard ${m.heard.join(", ")}`) : null,
      m.text ? make("pre", "", m.text) : null);
    if (m.adapter) box.title = m.adapter;
    if (m.credit !== null) box.style.setProperty("--share", `${100 * Math.max(0, Math.min(1, m.credit))}%`);
    return box;
  };

  const talk = (now) => {
    const rounds = [...new Set(now.messages.map((m) => m.round))].sort((a, b) => a - b);
    return rounds.map((r) => make("div", "",
      make("div", "round", `Round ${r + 1}`),
      make("div", "said", ...now.messages.filter((m) => m.round === r).map(message))));
  };

  const draw = () => {
    const shown = episodes[episode];
    const head = make("p", "goal", shown.goal || shown.task, " ",
      make("span", `outcome ${shown.outcome}`, shown.outcome));
    const parts = [controls(shown), head];
    if (shown.fault) parts.push(make("p", "error", shown.fault));
    const now = shown.steps[step];
    if (now) {
      const decided = make("p", "decision", "Decision: ", make("b", "", now.decision || "none"));
      if (now.executed) decided.append("; executed instead: ", make("b", "", now.executed));
      if (now.end) decided.append(` (${now.end})`);
      if (now.note) decided.append(make("div", "note", now.note));
      parts.push(make("div", "scene", phone(now), make("div", "", decided, ballot(now), ...talk(now))));
    }
    const focused = root.contains(document.activeElement);
    root.replaceChildren(...parts);
    if (focused) root.focus({ preventScroll: true });
  };

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "SELECT") return;
    if (event.key === "ArrowLeft") go(episode, step - 1);
    else if (event.key === "ArrowRight") go(episode, step + 1);
    else return;
    event.preventDefault();
  });
  draw();
})();
