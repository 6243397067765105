"""Accuracy of a trained critic adapter that does not see the solution.

    python -m benchmarks.studies.critic --model MODEL --out runs/critic
    python -m benchmarks.studies.critic --out runs/critic --summarise --record
    python -m benchmarks.studies.critic --recorded
    python -m benchmarks.studies.critic --quick

``MODEL``: a causal language model in this process, such as the folder of SmolLM2. The base agent's
team plays training tasks (the phone's training templates, phones with invented apps, training seeds
of MiniWoB++ pages), and an adapter learns which of its replies, the solver's and an adversary's are
right. Then it judges replies to test tasks, and is compared with the majority of the agents, the
probability of the reply, the model without training, and the outcome alone. No test template, app
or seed is trained on. Existing files, critics and figures are not made again, so the same command
continues after an interruption. The critics are in OUT/critics, as ``learned_critic`` reads them.
MiniWoB++ pages need a Chromium; ``--no-web`` leaves them out.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import msgspec

from benchmarks.studies.critic.sizes import ARMS, PHONE_TESTS, QUICK, TESTS, Sizes
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings
from swarm_ui.files import write_atomic

NAME = "critic"


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__, "quick", "summarise", "record", "recorded")
    normal = Sizes(model="")
    parser.add_argument("--model", help="causal language model: its folder or name")
    parser.add_argument("--agent", help="base agent that acts (default: the one that ships)")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=["all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the training")
    parser.add_argument(
        "--minutes", type=float, default=normal.minutes, help="most of one training; 0: no limit"
    )
    for name in ("phone", "invented", "web_each", "validation", "test", "web_test_each"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(normal, name))
    parser.add_argument("--learning-rate", type=float, default=normal.learning_rate)
    parser.add_argument("--start", default="", help="adapter that training starts from")
    parser.add_argument("--no-web", action="store_true", help="without MiniWoB++ pages")
    given = parsed(parser)
    if not (given.quick or given.recorded) and (
        given.out is None or not (given.model or given.summarise)
    ):
        parser.error("--out FOLDER and --model MODEL are needed (or --quick)")
    return given


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.critic.report import Record, record_of, rows_of, summary

    def read(folder: Path) -> Record:
        record = record_of(folder)
        write_atomic(folder / "summary.md", summary(record) + "\n")
        return record

    record = recorded_study(
        given, NAME, Record, settings=None, files=(),
        run=lambda folder: _study(given, folder, _sizes(given, folder)),
        read=read,
    )  # fmt: skip
    print(summary(record))
    print(json.dumps(rows_of(record)))
    return 0


def _sizes(given: argparse.Namespace, folder: Path) -> Sizes:
    if given.quick:
        return msgspec.structs.replace(QUICK, model=str(folder / "tiny"))
    chosen = {name: getattr(given, name) for name in Sizes.__struct_fields__ if name in given}
    chosen["minutes"] = given.minutes or None
    web = {"web_each": 0, "web_test_each": 0, "pages": 0} if given.no_web else {}
    return Sizes(**{**chosen, **web})


def _study(given: argparse.Namespace, folder: Path, sizes: Sizes) -> None:
    """Make every file, critic and figure that does not exist yet."""
    check_learning(Settings(agent=sizes.agent))
    check_study(folder / "settings.json", sizes)
    from benchmarks.studies.critic.collecting import Collection
    from benchmarks.studies.critic.critics import Critics
    from benchmarks.studies.critic.tiny_model import write_tiny_model

    if sizes.quick:
        write_tiny_model(Path(sizes.model))
    display = ProgressDisplay()
    collection = Collection(folder / "judged", sizes, display)
    critics = Critics(folder, sizes, collection, display)
    splits = list(TESTS if sizes.web_test_each else PHONE_TESTS)
    for source in dict.fromkeys(s for arm in given.arms for s in critics.sources(arm)):
        collection.training(source)
    collection.validation()
    for split in splits:
        collection.test(split)
    for seed in given.seeds:
        for arm in given.arms:
            critics.train(arm, seed)
            critics.measure(arm, seed, splits)
    critics.baselines(splits)


if __name__ == "__main__":
    sys.exit(main())
