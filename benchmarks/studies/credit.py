"""Which source of credit teaches a team most, and what does each cost?"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cell import Cell
from benchmarks.study import Study
from benchmarks.support.tables import markdown_table

SOURCES = (
    "outcome", "scripted critic", "agent-wise advantage (Dr. MAS)",
    "state-wise advantage (GiGPO)", "search tree values (MALT)", "progress attribution (SPA-RL)",
    "leave one out", "resampling", "Shapley", "learned critic (SmolLM2)",
)  # fmt: skip
CREDITS, GUIDES = ("outcome", "scripted critic"), ("guided 0", "guided 0.7")
GRADES = ("negatives not graded", "negatives graded")
FACTORS = tuple(f"DPO: {a}, {b}, {c}" for a in CREDITS for b in GUIDES for c in GRADES)
LEVELS = {
    f"DPO, all with {level}": [
        name for name in FACTORS if name.split(": ")[1].split(", ")[k] == level
    ]
    for k, levels in enumerate((CREDITS, GUIDES, GRADES))
    for level in levels
}
"""Main effects: the mean of the four arms that have a level in common."""


def accuracy(cells: Sequence[Cell]) -> str:
    """How well the scores of each source agree with a Monte Carlo estimate, and what they cost."""
    lines = []
    for cell in cells:
        if cell.arm.startswith("scores of: "):
            note = cell.notes
            auc, inside = (_auc(note[key]) for key in ("auc", "inside"))
            lines.append((
                cell.arm.removeprefix("scores of: "), auc, inside, f"{100 * note['scored']:.0f}",
                f"{note['calls']:,}", f"{note['seconds']:.2f}",
            ))  # fmt: skip
    heads = ("source", "AUC", "AUC inside a decision", "scored %", "calls", "CPU-s")
    return markdown_table(heads, lines, "lllr")


def _auc(one: dict[str, float] | None) -> str:
    """With few templates, their number instead of an interval."""
    if one is None:
        return "–"
    few = one["n"] < 5
    interval = f"({one['n']} templates)" if few else f"[{one['low']:.2f}, {one['high']:.2f}]"
    return f"{one['mean']:.2f} {interval}"


STUDY = Study(
    named=(
        ("scripted critic", "outcome"),
        ("search tree values (MALT)", "outcome"),
        ("outcome, guided 0.7", "outcome"),
    ),
    named_on=("new parameters",),
    explored=(
        *((source, "outcome") for source in SOURCES[2:] if "MALT" not in source),
        ("scripted critic, guided 0.7", "outcome, guided 0.7"),
        ("scripted critic, guided 0.7", "scripted critic"),
        *((f"DPO, all with {b}", f"DPO, all with {a}") for a, b in (CREDITS, GUIDES, GRADES)),
    ),
    means=LEVELS,
    more=accuracy,
    note="The phone is simulated; critic and adversary are scripted. The second named difference "
    "is of the critic-free source with the highest success on validation episodes.",
)
