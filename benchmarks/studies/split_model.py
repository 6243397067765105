"""Can a small language model pass on facts that only one of its agents sees?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.cell import Cell
from benchmarks.study import Study
from benchmarks.support.tables import markdown_table
from swarm_ui.environments.phone.split import SPLIT_TEMPLATES

SWAPPED = "needed edges, values swapped"


def details(cells: Sequence[Cell]) -> str:
    """What was said and typed. "Copied" and "computed" were added after the first episodes."""
    lines = []
    for cell in cells:
        for split, outcomes in cell.outcomes.items():
            note = cell.notes[split]
            copied = [all(f.rule == "join" for f in SPLIT_TEMPLATES[o.template].fills.values())
                      for o in outcomes]  # fmt: skip
            shares = [[float(bool(o.value)) for o, own in zip(outcomes, copied, strict=True)
                       if own is kind] for kind in (True, False)]  # fmt: skip
            said = [share for each in note["said"] for share in each]
            work, shown = cell.work[split], [*shares, said, note["written_twin"]]
            lines.append((
                cell.arm, split, *(f"{100 * fmean(each):.0f}" if each else "–" for each in shown),
                f"{work['calls'] / work['decisions']:.1f}",
                f"{work['tokens'] / work['decisions']:,.0f}",
            ))  # fmt: skip
    heads = ("arm", "templates", "values copied %", "values computed %", "said %",
             "values of the twin typed %", "calls", "tokens of a decision")  # fmt: skip
    return markdown_table(heads, lines, "llr")


STUDY = Study(
    named=(
        ("needed edges", "no talk"), ("learned edges", "broadcast"), ("needed edges", SWAPPED),
    ),
    more=details,
    note="The phone is simulated. One training, one seed of test episodes.",
)  # fmt: skip
