"""Stage 1 and stage 2 of a real language model, on the splits of the small agent.

    swarm-ui models pull smollm2
    python -m benchmarks.studies.real_model --out runs/real_model --dry-run
    python -m benchmarks.studies.real_model --out runs/real_model
    python -m benchmarks.studies.real_model --out runs/real_model --summarise --record
    python -m benchmarks.studies.real_model --out runs/more --restore --seeds 1 2 3 4

Every cell is one ``swarm-ui`` command in a process of its own, and can be typed by hand. Finished
cells are not repeated, and an interrupted cell is continued, so the same command can be repeated on
another day. The record holds the outcomes of finished cells without their weights; ``--restore``
writes them where ``--out`` lacks them. ``--only`` chooses cells by the beginning of their names.
The phone is simulated, and the critic "scripted" knows the solution; "learned" does not.

Every row starts from one stage 1, the adapter of this package or another (``--adapter``). A vote of
four agents with that one adapter is also the control "one agent with as many calls as the team".
``--quick`` plays two episodes of three rows; the figures mean nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.studies.commands.cells import Cell
from benchmarks.studies.commands.study import run_study, study_parser
from benchmarks.studies.options import parsed
from benchmarks.studies.real_model.plan import Plan
from benchmarks.studies.real_model.sizes import QUICK, Sizes
from swarm_ui.experiment.script_runner import script

_QUICK_CELLS = ("base-agent", "stage-1-one-agent", "stage-1-vote")


@script
def main() -> int:
    parser = study_parser(__doc__ or "", Sizes())
    parser.add_argument("--critic", type=Path, help="folder of a learned critic")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = parsed(parser)

    def plan(sizes: Sizes, out: Path) -> list[Cell]:
        return Plan(sizes, out, given.seeds, given.critic).cells()

    return run_study("real_model", given, Sizes, QUICK, _QUICK_CELLS, plan)


if __name__ == "__main__":
    sys.exit(main())
