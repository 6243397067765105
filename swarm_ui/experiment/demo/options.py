"""The command line of the demo."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import EDGES, ENVIRONMENTS, METHODS, Settings, defaults
from swarm_ui.prompts import FORMATS

_ABOUT = """\
A team of agents learns to operate a phone, and acts on real web pages.

With no options, in two to five minutes on two cores, with no key, GPU, emulator or download:
takes the base agent that ships; rolls out a team of 4 agents x 3 rounds on the embedded phone and
on phones with invented apps; has a critic fill the credit table, an adversary write negatives, and
a teacher show an action where no agent is right; trains one LoRA adapter for each agent; redraws
the edges, and repeats; then evaluates on held-out tasks, and on real MiniWoB++ pages where a
Chromium is found. Prints one table and writes a run directory with an HTML report, whose path is
the last line. --devices 0 --no-teacher leaves out the invented apps and the teacher, which the
paper does not have."""

_AFTER = """\
The phone is a simulation, and its critic and teacher are scripted: scores on it are not
AndroidWorld scores.

examples:
  python demos/androidworld_swarm.py --quick
  python demos/androidworld_swarm.py --method dpo --edges learned --seed 3 --out runs/learned
  python demos/androidworld_swarm.py --resume runs/learned
  python demos/androidworld_swarm.py --base-url http://localhost:8000/v1 --model NAME
  python demos/androidworld_swarm.py --model smollm2 --adapters FOLDER --iterations 1"""


class Request(NamedTuple):
    """The parsed command line."""

    settings: Settings
    out: Path | None
    resume: Path | None
    """The run to resume. It has its own settings, so ``settings`` is ignored."""
    trust: bool = False
    """The resumed run may connect to the endpoint that its settings name."""


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages are a single line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (--help lists all options)\n")


def parse(arguments: Sequence[str] | None = None) -> Request:
    """Read the command line. Exits with code 2 and one line if it is wrong, as argparse does.

    Raises:
        ConfigError: the options contradict each other.
    """
    given = vars(_parser().parse_args(arguments))
    out, resume = given.pop("out", None), given.pop("resume", None)
    trust = given.pop("trust", False)
    if resume is not None:
        if given or out is not None:
            extra = ["--" + name.replace("_", "-") for name in (*given, *(["out"] if out else []))]
            raise ConfigError(
                f"--resume continues a run with its own settings: leave out {', '.join(extra)}"
            )
        return Request(Settings(), None, resume, trust)
    base = defaults(
        quick=given.get("quick", False),
        env=given.get("env", "phone"),
        endpoint="base_url" in given or "model" in given,
    )
    if "base_url" in given and given.get("iterations"):
        raise ConfigError("--iterations: a served model is evaluated, not trained; leave it out")
    if "iterations" in given:
        given["shared_iterations"] = -(-3 * given["iterations"] // 5)
    if "tasks" in given:
        given["tasks"] = tuple(t for t in given["tasks"].split(",") if t)
        given["episodes_other"] = 0
        given.setdefault("devices", 0)
    return Request(dataclasses.replace(base, **given), out, None)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        description=_ABOUT,
        epilog=_AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for title, options in _options(Settings()).items():
        group = parser.add_argument_group(title)
        for name, (help, given) in options.items():
            group.add_argument(f"--{name}", help=help, **given)
    return parser


_SWITCH = {"action": "store_true"}
_INT, _FLOAT, _COUNT = {"type": int}, {"type": float}, {"type": int, "metavar": "N"}
_SHARE = {"type": float, "metavar": "SHARE"}
_RUN, _NAME = {"type": Path, "metavar": "RUN"}, {"metavar": "NAME"}


def _options(full: Settings) -> dict[str, dict[str, tuple[str, dict[str, Any]]]]:
    """The options of each group: name, help, and how argparse reads it."""
    return {
        "the run": {
            "quick": ("a short run (under 90 s)", _SWITCH),
            "out": ("run directory (default: runs/...)", _RUN),
            "resume": ("continue an interrupted run", _RUN),
            "trust": ("let a resumed run connect to the endpoint in its settings", _SWITCH),
            "seed": ("seed of all random choices (default: 0)", _INT),
            "processes": ("evaluation processes (default: min(2, cores))", _INT),
        },
        "where the agents act": {
            "env": ("phone: simulated, in process (default); miniwob: real web pages, credit by "
                    "outcome; androidworld: a real emulator, evaluation only",
                    {"choices": ENVIRONMENTS}),
            "tasks": ("only these tasks, by name", {"metavar": "A,B"}),
            "episodes-test": (f"test episodes of each arm (default: {full.episodes_test}; miniwob: "
                              "of each task, 4; endpoint and androidworld: 12)", _COUNT),
        },
        "the agent": {
            "agent": ("the agent that all start from: base; general, which had more stage 1 and "
                      "leaves stage 2 little to gain; or a folder (default: base)",
                      {"metavar": "AGENT"}),
        },
        "the team and its learning": {
            "agents": (f"number of agents (default: {full.agents})", _INT),
            "rounds": (f"message rounds (default: {full.rounds})", _INT),
            "density": (f"probability of an edge (default: {full.density})", _FLOAT),
            "edges": ("redrawn each iteration (default), fixed, or learned", {"choices": EDGES}),
            "method": ("chosen actions only (default), or preferences", {"choices": METHODS}),
            "iterations": (f"iterations of stage 2 (default: {full.iterations}, with --model 0; 0: "
                           "no training)", _INT),
            "episodes": (f"rollouts in each iteration (default: {full.episodes})", _INT),
            "rehearsal": ("share of each update that repeats stage-1 lessons, against forgetting "
                          f"(default: {full.rehearsal})", _SHARE),
            "devices": ("invented devices, on which half of the rollouts are played; 0: all are on "
                        "the phone (default: 256; with --tasks or --model 0)", _COUNT),
            "teacher": ("whether the solver of the simulated phone shows a right action where no "
                        "agent proposed one (default: it does, not with --model)",
                        {"action": argparse.BooleanOptionalAction}),
            "rank": ("rank of the adapters (default: 64, with --model 16)", _COUNT),
            "critic-noise": ("share of the scripted critic's verdicts that are inverted "
                             f"(default: {full.critic_noise})", _SHARE),
        },
        "a language model instead (trained if --iterations is given, and it runs here)": {
            "base-url": ("OpenAI-compatible, up to /v1; the key comes from OPENAI_API_KEY",
                         {"metavar": "URL"}),
            "model": ("the model that acts: served by --base-url, or in this process: smollm2, a "
                      "folder, or org/name on the Hugging Face Hub", _NAME),
            "adapters": ("what it starts with: one adapter for all agents, or RUN/adapters",
                         {"metavar": "FOLDER"}),
            "prompt-format": ("format of its prompts and replies (default: its own, or else json)",
                              {"choices": tuple(FORMATS)}),
            "critic-model": ("the served model that assigns credit", _NAME),
            "max-calls": ("maximum number of requests", _COUNT),
        },
    }  # fmt: skip
