// Edges over iterations: one of the drawn frames is shown, which a slider chooses.
const startEdges = () => document.querySelectorAll(".history").forEach((figure) => {
  const frames = [...figure.querySelectorAll(".frame")];
  const last = frames.length - 1;
  const slider = make("input", "");
  Object.assign(slider, { type: "range", min: 0, max: last, step: 1, value: last });
  slider.setAttribute("aria-label", "Iteration");
  const label = make("output", "");
  const show = () => {
    frames.forEach((frame, k) => { frame.hidden = k !== Number(slider.value); });
    label.textContent = frames[slider.value].dataset.label;
    slider.setAttribute("aria-valuetext", label.textContent);
  };
  slider.addEventListener("input", show);
  show();
  frames[0].before(make("div", "bar", last ? slider : null, label));
});
