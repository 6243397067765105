// Asks for the parts of the page again and again, and replaces those that have changed. The parts
// are markup in which the server has escaped every text of the run; the policy allows no other
// script and no handler in it.
const SOON = 2000;
const LATER = 5000;
const state = document.getElementById("connection");

const show = (parts) => {
  for (const [name, markup] of Object.entries(parts)) {
    const node = document.getElementById(name);
    if (!node || node.dataset.shown === markup) continue;
    node.dataset.shown = markup;
    const place = document.activeElement?.closest(`#${name}`) ? document.activeElement.getAttribute("href") : null;
    node.innerHTML = markup;
    if (place) node.querySelector(`[href="${CSS.escape(place)}"]`)?.focus();
  }
};

const look = async () => {
  let wait = SOON;
  try {
    const answer = await fetch("state", { cache: "no-store", signal: AbortSignal.timeout(20000) });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    show(await answer.json());
    state.textContent = "";
    document.body.dataset.ready = "";
  } catch {
    state.textContent = "The server of this page has ended or does not answer. What you see is the last state.";
    wait = LATER;
  }
  setTimeout(look, document.hidden ? LATER : wait);
};
look();
