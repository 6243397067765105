"""The command line of the demo."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import EDGES, ENVIRONMENTS, METHODS, Settings, defaults

_ABOUT = """\
A team of agents learns to operate a phone, and acts on real web pages.

With no options, in two to five minutes on two cores, with no key, GPU, emulator or download:
takes the base agent that ships; rolls out a team of 4 agents x 3 rounds on the embedded phone;
has a critic fill the credit table and an adversary write negatives; trains one LoRA adapter for
each agent; redraws the edges, and repeats; then evaluates on held-out tasks, and on real
MiniWoB++ pages where a Chromium is found. Prints one table and writes a run directory with an
HTML report, whose path is the last line."""

_AFTER = """\
The phone is a simulation and its critic is scripted: scores on it are not AndroidWorld scores.

examples:
  python demos/androidworld_swarm.py --quick
  python demos/androidworld_swarm.py --method dpo --edges learned --seed 3 --out runs/learned
  python demos/androidworld_swarm.py --resume runs/learned
  python demos/androidworld_swarm.py --base-url http://localhost:8000/v1 --model NAME"""


class Request(NamedTuple):
    """What the user asked for."""

    settings: Settings
    out: Path | None
    resume: Path | None
    """The run to resume. It has its own settings, so ``settings`` is ignored."""


class _Parser(argparse.ArgumentParser):
    """Errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (--help lists all options)\n")


def parse(arguments: Sequence[str] | None = None) -> Request:
    """Read the command line. Exits with code 2 and one line if it is wrong, as argparse does.

    Raises:
        ConfigError: the options contradict each other.
    """
    given = vars(_parser().parse_args(arguments))
    out, resume = given.pop("out", None), given.pop("resume", None)
    if resume is not None:
        if given or out is not None:
            extra = ["--" + name.replace("_", "-") for name in (*given, *(["out"] if out else []))]
            raise ConfigError(
                f"--resume continues a run with its own settings: leave out {', '.join(extra)}"
            )
        return Request(Settings(), None, resume)
    base = defaults(
        quick=given.get("quick", False),
        env=given.get("env", "phone"),
        endpoint="base_url" in given,
    )
    if "iterations" in given:
        given["shared_iterations"] = -(-3 * given["iterations"] // 5)
    if "tasks" in given:
        given["tasks"] = tuple(t for t in given["tasks"].split(",") if t)
        given["episodes_other"] = 0
    return Request(dataclasses.replace(base, **given), out, None)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        description=_ABOUT,
        epilog=_AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    full = Settings()
    run = parser.add_argument_group("the run")
    run.add_argument("--quick", action="store_true", help="a short run (under 90 s)")
    run.add_argument("--out", type=Path, metavar="RUN", help="run directory (default: runs/...)")
    run.add_argument("--resume", type=Path, metavar="RUN", help="continue an interrupted run")
    run.add_argument("--seed", type=int, help="seed of all random choices (default: 0)")
    run.add_argument("--processes", type=int, help="evaluation processes (default: min(2, cores))")
    world = parser.add_argument_group("where the agents act")
    world.add_argument(
        "--env", choices=ENVIRONMENTS, help="phone: simulated, in process (default); miniwob: real "
        "web pages, credit by outcome; androidworld: a real emulator, evaluation only",
    )  # fmt: skip
    world.add_argument("--tasks", metavar="A,B", help="only these tasks, by name")
    world.add_argument(
        "--episodes-test", type=int, metavar="N", help=f"test episodes of each arm (default: "
        f"{full.episodes_test}; miniwob: of each task, 4; endpoint and androidworld: 12)",
    )  # fmt: skip
    agent = parser.add_argument_group("the base agent")
    agent.add_argument(
        "--agent", metavar="FOLDER", help="base agent to use instead of the shipped one"
    )
    agent.add_argument(
        "--from-scratch", action="store_true", help="train it first, by stage 1 (minutes)"
    )
    _team(parser, full)
    served = parser.add_argument_group("a served model instead (evaluated, not trained)")
    served.add_argument("--base-url", metavar="URL", help="OpenAI-compatible, up to /v1; the key "
                        "comes from OPENAI_API_KEY")  # fmt: skip
    served.add_argument("--model", metavar="NAME", help="the model that acts")
    served.add_argument("--critic-model", metavar="NAME", help="the model that assigns credit")
    served.add_argument("--max-calls", type=int, metavar="N", help="maximum number of requests")
    return parser


def _team(parser: argparse.ArgumentParser, full: Settings) -> None:
    team = parser.add_argument_group("the team and its learning")
    team.add_argument("--agents", type=int, help=f"number of agents (default: {full.agents})")
    team.add_argument("--rounds", type=int, help=f"message rounds (default: {full.rounds})")
    team.add_argument(
        "--density", type=float, help=f"probability of an edge (default: {full.density})"
    )
    team.add_argument(
        "--edges", choices=EDGES, help="redrawn each iteration (default), fixed, or learned"
    )
    team.add_argument(
        "--method", choices=METHODS, help="chosen actions only (default), or preferences"
    )
    team.add_argument(
        "--iterations",
        type=int,
        help=f"iterations of stage 2 (default: {full.iterations}; 0: no training)",
    )
    team.add_argument(
        "--episodes", type=int, help=f"rollouts in each iteration (default: {full.episodes})"
    )
    team.add_argument(
        "--rehearsal", type=float, metavar="SHARE", help="share of each update that repeats "
        f"stage-1 lessons, against forgetting (default: {full.rehearsal})",
    )  # fmt: skip
    team.add_argument(
        "--critic-noise", type=float, metavar="SHARE", help="share of the scripted critic's "
        f"verdicts that are inverted (default: {full.critic_noise})",
    )  # fmt: skip
