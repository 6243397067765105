"use strict";
// Shows the screen, sends what the person does, shows what came of it. All texts are set as text.
(() => {
  const LARGEST = 2.5; // how often its own size a screen is shown at most
  const $ = (id) => document.getElementById(id);
  let now = null; // the state as last told
  let chosen = null; // the element that is being typed into
  let busy = false;

  const make = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  const ask = async (what, body) => {
    if (busy) return;
    busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(what, body === undefined ? {} : {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      const told = await reply.json();
      if (told.error) say(told.error);
      else show(told, reply.status === 409);
    } catch {
      say("The game is no longer running: start it again in the terminal.");
    } finally {
      busy = false;
      document.body.removeAttribute("aria-busy");
    }
  };

  const act = (action) => ask("act", { turn: now.turn, action });
  const offers = (kind) => now.actions.includes(kind);

  const say = (text) => {
    $("note").textContent = text;
    $("note").hidden = !text;
  };

  const point = (kind, element, more) => ({
    action_type: kind,
    index: element.index,
    ...(element.label ? { target: element.label } : {}),
    ...more,
  });

  const press = (element) => {
    if (now.ended) return;
    if (element.editable && offers("input_text")) compose(element);
    else act(point("click", element));
  };

  const compose = (element) => {
    chosen = element;
    $("composer-label").textContent = `Type into “${element.label || `field ${element.index}`}”`;
    $("composer-text").value = element.value || "";
    $("composer").hidden = false;
    $("composer-press").hidden = !offers("click");
    $("composer-text").focus();
    $("composer-text").select();
  };

  const light = (index, on) => {
    for (const node of document.querySelectorAll(`[data-index="${index}"]`)) {
      node.classList.toggle("lit", on);
    }
  };

  const both = (node, element) => {
    node.type = "button";
    node.dataset.index = element.index;
    node.disabled = now.ended;
    node.addEventListener("click", (event) => {
      event.stopPropagation();
      press(element);
    });
    node.addEventListener("contextmenu", (event) => {
      if (!offers("long_press") || now.ended) return;
      event.preventDefault();
      act(point("long_press", element));
    });
    node.addEventListener("mouseenter", () => light(element.index, true));
    node.addEventListener("mouseleave", () => light(element.index, false));
    return node;
  };

  const area = (element) => {
    const [left, top, right, bottom] = element.bounds;
    return (right - left) * (bottom - top);
  };

  const drawGlass = () => {
    const glass = $("glass");
    const placed = now.elements.filter((element) => element.bounds && area(element) > 0);
    $("stage").hidden = !now.width || !now.height || (!now.picture && !placed.length);
    glass.replaceChildren();
    glass.classList.toggle("sketch", !now.picture);
    glass.style.aspectRatio = `${now.width} / ${now.height}`;
    glass.style.setProperty("--largest", `${LARGEST * now.height}px`);
    if (now.picture) {
      const image = make("img");
      image.alt = `Screen of ${now.app || now.task}`;
      image.draggable = false;
      image.src = `data:image/png;base64,${now.picture}`;
      glass.append(image);
    }
    // Small ones last, so that they lie on top of what encloses them.
    for (const element of [...placed].sort((a, b) => area(b) - area(a))) {
      const [left, top, right, bottom] = element.bounds;
      const words = [element.label, stateOf(element)].filter(Boolean).join(" ");
      const box = both(make("button", now.picture ? undefined : words, "box"), element);
      box.title = `${element.index}: ${element.role} ${element.label}`;
      box.setAttribute("aria-label", box.title);
      box.tabIndex = -1; // the list beside it is there for the keyboard
      box.style.left = `${(100 * left) / now.width}%`;
      box.style.top = `${(100 * top) / now.height}%`;
      box.style.width = `${(100 * (right - left)) / now.width}%`;
      box.style.height = `${(100 * (bottom - top)) / now.height}%`;
      glass.append(box);
    }
  };

  $("glass").addEventListener("click", (event) => {
    if (now === null || now.ended || !now.picture) return;
    const frame = $("glass").getBoundingClientRect();
    const x = Math.floor(((event.clientX - frame.left) / frame.width) * now.width);
    const y = Math.floor(((event.clientY - frame.top) / frame.height) * now.height);
    act({ action_type: "click", x, y });
  });

  const stateOf = (element) => [
    element.value ? (element.editable ? `[${element.value}]` : element.value) : "",
    element.checked === true ? "on" : element.checked === false ? "off" : "",
    element.selected ? "selected" : "",
    element.focused ? "focused" : "",
    element.enabled === false ? "disabled" : "",
  ].filter(Boolean).join(" · ");

  const drawList = () => {
    $("elements").replaceChildren(...now.elements.map((element) => {
      const row = both(make("button"), element);
      row.append(
        make("span", element.index, "number"), make("span", element.role, "role"),
        make("span", element.label || "·", "label"), make("span", stateOf(element), "state"),
      );
      const item = make("li");
      item.append(row);
      return item;
    }));
    $("history").replaceChildren(...now.history.map((text) => make("li", text)));
    $("steps").textContent = now.steps ? `(${now.steps})` : "";
  };

  const key = (text, kind, action, className) => {
    const node = make("button", text, className);
    node.type = "button";
    node.disabled = now.ended;
    node.addEventListener("click", () => act({ action_type: kind, ...action }));
    return offers(kind) ? [node] : [];
  };

  const drawKeys = () => {
    $("keys").replaceChildren(
      ...key("Back", "navigate_back"), ...key("Home", "navigate_home"),
      ...key("Enter", "keyboard_enter"),
      ...key("Scroll down", "scroll", { direction: "down" }),
      ...key("Scroll up", "scroll", { direction: "up" }),
      ...key("Wait", "wait"),
    );
    $("answer").hidden = !offers("answer") || now.ended;
    const leave = make("button", "Give up");
    leave.type = "button";
    leave.addEventListener("click", () => ask("leave", { turn: now.turn }));
    $("ends").replaceChildren(...(now.ended ? [] : [
      ...key("Task is done", "status", { goal_status: "complete" }, "main"),
      ...key("Cannot be done", "status", { goal_status: "infeasible" }), leave,
    ]));
  };

  const show = (told, stale) => {
    now = told;
    chosen = null;
    $("composer").hidden = true;
    $("answer-text").value = "";
    $("task").textContent = now.app ? `${now.task}, ${now.app}` : now.task;
    $("goal").textContent = now.goal;
    drawGlass();
    drawList();
    drawKeys();
    say(stale ? "The screen had changed in the meantime: look again." : now.note);
    $("outcome").hidden = !now.ended;
    if (now.ended) {
      $("outcome").textContent = now.outcome[0].toUpperCase() + now.outcome.slice(1);
      $("outcome").classList.toggle("solved", now.solved);
      $("outcome").append(make("small", now.saved
        ? `Saved in ${now.saved}. You can close this page.` : "You can close this page."));
    }
    document.body.dataset.turn = now.turn;
  };

  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen) act(point("input_text", chosen, { text: $("composer-text").value }));
  });
  $("composer-press").addEventListener("click", () => chosen && act(point("click", chosen)));
  $("answer").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("answer-text").value) act({ action_type: "answer", text: $("answer-text").value });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("composer").hidden = true;
  });

  ask("state");
})();
