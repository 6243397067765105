"""Learning curves of edges: success and tokens against training episodes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.studies.edge_credit.plan import CRITIC, ERRORS, OUTCOME, WITHOUT
from benchmarks.studies.edge_credit.report import ORACLE, Study

_INKS = {OUTCOME: "#33658a", CRITIC: "#b3541e", WITHOUT: "#55803c", ERRORS: "#d9a066"}
_NOTE = (
    "lines: mean of the most probable graphs over runs; bands: 95 %, Student's t over runs. "
    "Scripted agents and critic, simulated phone"
)


def picture(study: Study, path: Path) -> None:
    """Three panels; needs matplotlib (extra ``train``)."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    known, new, spent = figure.subplots(1, 3)
    oracle = {row.templates: row for row in study.rows if row.name == ORACLE}
    for axes, templates in ((known, "train"), (new, "new_templates")):
        for line in (one for one in study.lines if one.templates == templates):
            ink = _INKS[line.name]
            axes.plot(line.episodes, [100 * v for v in line.success], color=ink, label=line.name)
            axes.fill_between(
                line.episodes, [100 * v for v in line.low], [100 * v for v in line.high],
                color=ink, alpha=0.15, linewidth=0,
            )  # fmt: skip
        axes.axhline(100 * oracle[templates].success, color="#8a9ba8", linestyle="--")
        axes.set(ylabel="success, %", ylim=(0, 104))
    for line in (one for one in study.lines if one.templates == "train"):
        spent.plot(line.episodes, line.tokens, color=_INKS[line.name])
    spent.axhline(oracle["train"].tokens, color="#8a9ba8", linestyle="--", label=ORACLE)
    spent.set(ylabel="tokens of an episode", ylim=(0, None))
    for axes, title in zip(
        (known, new, spent),
        ("known templates", "new templates", "tokens, known templates"), strict=True,
    ):  # fmt: skip
        axes.set(title=title, xlabel="training episodes", xscale="log")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = known.get_legend_handles_labels()
    more, names = spent.get_legend_handles_labels()
    figure.legend(
        [*handles, *more], [*labels, *names], loc="outside lower center", ncols=5, frameon=False
    )
    figure.suptitle(_NOTE, fontsize=9)
    with rc_context({"svg.hashsalt": "edge credit"}):  # equal data give an equal file
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
