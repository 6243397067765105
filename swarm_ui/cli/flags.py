"""Options of commands, and the settings that they stand for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from swarm_ui.cli.output import Output
from swarm_ui.experiment.config import Draft, read_draft
from swarm_ui.experiment.environments import ENVIRONMENTS, spec_of
from swarm_ui.experiment.environments.phone import SUITES
from swarm_ui.experiment.teams import SHAPES

WHERE, WHO, HOW, LEARNING = "Where it acts", "Who acts", "How it runs", "Learning"


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Completion of a word that is one of a few."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion of a task, in environments whose tasks are known without a device."""
    known_tasks = spec_of(ctx.params.get("env") or "phone").known_tasks
    known = known_tasks() if known_tasks is not None else ()
    return [name for name in known if name.startswith(incomplete)]


def declare(*names: str, value: str = "", help: str, panel: str = HOW,
            complete: Callable[..., list[str]] | None = None) -> Any:  # fmt: skip
    """An option for Typer. ``value``: the placeholder of its value; empty: it is a switch."""
    return typer.Option(
        *names, metavar=value, help=help, rich_help_panel=panel or None, autocompletion=complete
    )


@dataclass(frozen=True, slots=True)
class Option:
    """An option of commands that take many."""

    name: str
    """Of the parameter."""
    type: Any
    declaration: Any
    """As Typer takes it."""
    setting: str = ""
    """The setting that it stands for, such as ``"team.agents"``; empty: none."""
    default: Any = None

    @property
    def flag(self) -> str:
        """Its name in error messages."""
        if isinstance(self.declaration, typer.models.ArgumentInfo):
            return str(self.declaration.metavar)
        names = [n for n in self.declaration.param_decls or () if n.startswith("--")]
        return names[0].partition("/")[0] if names else "--" + self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the user gave a command."""

    options: tuple[Option, ...]
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def output(self) -> Output:
        """Where the command writes."""
        return Output(machine=self["json"], quiet=self.values.get("quiet", False))

    def draft(self, *, file: bool = True) -> Draft:
        """Options over ``--set`` over the file. ``file``: read the file, if one is given."""
        given = {
            option.setting: (option.flag, self[option.name])
            for option in self.options
            if option.setting and self[option.name] not in (None, [])
        }
        return read_draft(self["config"] if file else None, given, self["settings"] or ())

    def given(self, *names: str) -> list[str]:
        """The flags, of those options, that the user gave."""
        options = {option.name: option for option in self.options}
        return [options[name].flag for name in names if self[name] not in (None, [])]


def command(*options: Option) -> Callable[[Callable[[Arguments], int]], Callable[..., int]]:
    """Make a command of a function: Typer sees the options, the function gets one record."""

    def decorate(function: Callable[[Arguments], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def call(**values: Any) -> int:
            return function(Arguments(options, values))

        types = {option.name: Annotated[option.type, option.declaration] for option in options}
        parameters = [
            inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default,
                              annotation=types[option.name])
            for option in options
        ]  # fmt: skip
        call.__annotations__ = {**types, "return": int}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


Url = Annotated[
    str | None, declare(value="URL", help="OpenAI-compatible endpoint, up to /v1", panel=WHO)
]
Json = Annotated[bool, declare("--json", help="one JSON object on standard output")]
Quiet = Annotated[bool, declare("--quiet", "-q", help="no progress, no remarks")]
Force = Annotated[bool, declare("--force", help="replace what exists", panel="")]

CONFIG = Option(
    "config", Path | None,
    declare("--config", "-c", value="FILE", help="TOML file; see swarm-ui init", panel=""),
)  # fmt: skip
SET = Option(
    "settings", list[str] | None,
    declare("--set", value="SECTION.NAME=VALUE", help="any setting of the file", panel=""),
)  # fmt: skip
ENVIRONMENT = Option(
    "env", str | None,
    typer.Argument(
        metavar="ENV", help="phone, miniwob, androidworld, handset, mind2web, or module:factory",
        autocompletion=one_of(*ENVIRONMENTS),
    ),
    "environment.name",
)  # fmt: skip
TASKS = Option(
    "task", list[str] | None,
    typer.Argument(metavar="TASK", help="none: the suite", autocompletion=tasks),
    "environment.tasks",
)  # fmt: skip
TASK = Option(
    "task", list[str] | None,
    declare("--task", value="NAME", help="only this one; repeatable", panel=WHERE, complete=tasks),
    "environment.tasks",
)  # fmt: skip
SPLIT = Option(
    "split", str | None, declare(value="NAME", help="which episodes", panel=WHERE),
    "environment.split",
)  # fmt: skip
SPLITS = Option(
    "split", list[str] | None,
    declare("--split", value="NAME", help="which episodes; repeatable", panel=WHERE),
)  # fmt: skip
SEED = Option(
    "seed", int | None, declare(value="N", help="of the choice of episodes", panel=WHERE),
    "environment.seed",
)  # fmt: skip
SEEDS = Option(
    "seed", list[int] | None,
    declare("--seed", value="N", help="of a choice of episodes; repeatable", panel=WHERE),
)  # fmt: skip
SUITE = Option(
    "suite", str | None,
    declare(value="NAME", help="phone: core, extended", panel=WHERE, complete=one_of(*SUITES)),
    "environment.suite",
)  # fmt: skip
EPISODES = Option(
    "episodes", int | None, declare("--episodes", "-n", value="N", help="how many", panel=WHERE),
    "environment.episodes",
)  # fmt: skip
MAX_STEPS = Option(
    "max_steps", int | None, declare(value="N", help="cut an episode off", panel=WHERE),
    "environment.max_steps",
)  # fmt: skip
DATA = Option(
    "data", str | None, declare(value="FOLDER", help="your copy of Mind2Web", panel=WHERE),
    "environment.data",
)  # fmt: skip
MODEL = Option(
    "model", str | None,
    declare("--model", "-m", value="NAME", panel=WHO,
            help="base, a folder, script:FILE, module:factory, or what --url serves"),
    "model.name",
)  # fmt: skip
URL = Option(
    "url", str | None,
    declare(value="URL", help="OpenAI-compatible endpoint, up to /v1", panel=WHO), "model.url",
)  # fmt: skip
ADAPTERS = Option(
    "adapters", str | None,
    declare(value="FOLDER", help="of a trained team: RUN/adapters", panel=WHO), "model.adapters",
)  # fmt: skip
TEAM = (
    Option("agents", int | None,
           declare("--agents", "-a", value="N", help="in the team", panel=WHO), "team.agents"),
    Option("rounds", int | None,
           declare("--rounds", "-r", value="N", help="of talk", panel=WHO), "team.rounds"),
    Option("edges", str | None,
           declare(value="EDGES", panel=WHO, complete=one_of("random", *SHAPES),
                   help="random, none, chain, debate, star, tree, 'agent_0>agent_1,…', or a run "
                   "that learned them"), "team.edges"),
    Option("views", str | None,
           declare(value="VIEW", help="same, shuffle, window", panel=WHO,
                   complete=one_of("same", "shuffle", "window")), "team.views"),
    Option("vote", str | None,
           declare(value="RULE", help="majority, probability", panel=WHO,
                   complete=one_of("majority", "probability")), "team.vote"),
    Option("temperature", float | None, declare(value="T", help="0: greedy", panel=WHO),
           "team.temperature"),
)  # fmt: skip
OUT = Option(
    "out", str | None,
    declare("--out", "-o", value="FOLDER", help="of the run (runs/<date>-…)"), "run.out",
)  # fmt: skip
CONCURRENCY = Option(
    "concurrency", int | None,
    declare("--concurrency", "-j", value="N", help="episodes at once"), "run.concurrency",
)  # fmt: skip
FAIL_UNDER = Option(
    "fail_under", float | None, declare(value="SHARE", help="exit with 1 if less is solved"),
    "run.fail_under",
)  # fmt: skip
RESUME = Option(
    "resume", Path | None, declare(value="RUN", help="go on with a run, as it was set up")
)
JSON = Option(
    "json", bool, declare("--json", help="one JSON object on standard output"), default=False
)
ENDING = (
    RESUME,
    Option("dry_run", bool, declare("--dry-run", help="say what would be done, and stop"),
           default=False),
    JSON,
    Option("quiet", bool, declare("--quiet", "-q", help="no progress, no remarks"), default=False),
)  # fmt: skip
AGAINST = Option(
    "against", Path | None, declare(value="RUN", help="compare with this run, episode by episode")
)
TRAINING = (
    Option("iterations", int | None,
           declare(value="N", help="of rollouts and updates", panel=LEARNING), "train.iterations"),
    Option("rollouts", int | None,
           declare(value="N", help="episodes in each iteration", panel=LEARNING),
           "train.episodes"),
    Option("method", str | None,
           declare(value="NAME", help="rft, dpo, ipo or pg", panel=LEARNING,
                   complete=one_of("rft", "dpo", "ipo", "pg")), "train.update.method"),
    Option("learn_edges", str | None,
           declare(value="HOW", help="redraw, fixed or learned", panel=LEARNING,
                   complete=one_of("redraw", "fixed", "learned")), "train.edges"),
    Option("critic", bool,
           declare("--critic/--no-critic", help="the phone's scripted critic gives credit; else "
                   "the outcome does", panel=LEARNING), default=True),
    Option("seed", int | None,
           declare(value="N", help="equal seeds give equal runs", panel=LEARNING), "train.seed"),
)  # fmt: skip
TRAINING_MAX_STEPS = replace(MAX_STEPS, setting="train.max_steps")
