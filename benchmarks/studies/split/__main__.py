"""Split facts: success and tokens of scripted teams, with edges from none to all, and learned ones.

    python -m benchmarks.studies.split --record
    python -m benchmarks.studies.split --quick
    python -m benchmarks.studies.split --recorded

Every value that a task needs is on the screen of another agent. The agents are **scripted**: the
study shows that the environment separates the arms and that the edge learner finds the senders. It
says nothing about language models. The last line is JSON: the rows of the table. The phone is
simulated.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from benchmarks.studies.options import parsed, study_options
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.experiment.script_runner import script

if TYPE_CHECKING:
    from benchmarks.studies.split.report import Study

NAME = "split"


@script
def main() -> int:
    parser = study_options(__doc__, "quick", "record", "recorded", out=False)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--episodes", type=int, default=12, help="test episodes of each template")
    given = parsed(parser)
    from benchmarks.studies.split.report import Study, markdown

    study = read_record(NAME, Study) if given.recorded else _study(given)
    if given.record:
        write_record(NAME, study)
    print(markdown(study))
    print(json.dumps(msgspec.to_builtins(study.rows)))
    return 0


def _study(given: argparse.Namespace) -> Study:
    from benchmarks.studies.split.learning import Plan
    from benchmarks.studies.split.report import run

    plan = Plan(steps=3, graphs=4) if given.quick else Plan()
    seeds, each = (given.seeds[:1], 1) if given.quick else (given.seeds, given.episodes)
    return run(
        origin("python -m benchmarks.studies.split"),
        plan,
        seeds,
        each,
        partial(print, file=sys.stderr, flush=True),
    )


if __name__ == "__main__":
    sys.exit(main())
