"""Options of commands. Everything else that a command reads is ``section.name=value``."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from swarm_ui.cli.output import Output
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, kind_of_environment
from swarm_ui.experiment.teams import SHAPES
from swarm_ui.nodes.models.pretrained.catalogue import AGENT_ADAPTERS, PRETRAINED
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS

WHERE, WHO, HOW, LEARNING = "Where it acts", "Who acts", "How it runs", "Learning"
_PANELS = {"env": WHERE, "eval": WHERE, "model": WHO, "team": WHO, "train": LEARNING,
           "critic": LEARNING}  # fmt: skip
"""Titles of option groups in the help, by section of the settings."""

Complete = Callable[..., list[str]]


def one_of(*names: str) -> Complete:
    """Completion for a fixed list of words."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def words_of(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion for an environment, and then for its tasks and for settings."""
    given = [word for word in ctx.params.get("words") or () if "=" not in word]
    if not given:
        return one_of(*ENVIRONMENTS)(incomplete)
    from swarm_ui.experiment.loading import setting_names

    kind = kind_of_environment(given[0])
    tasks = kind().known_tasks() if given[0] in ENVIRONMENTS else None
    found = [*(tasks or ()), *(f"{name}=" for name in setting_names(given[0]))]
    return one_of(*found)(incomplete)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, or its words."""

    name: str
    """Name of the parameter."""
    type: Any
    info: Any
    """The declaration for Typer."""
    setting: str = ""
    """The setting that the option sets, such as ``"team.agents"``; empty: none."""
    default: Any = None

    @property
    def flag(self) -> str:
        """Name of the option in error messages."""
        return "--" + self.name.replace("_", "-")


def option(
    name: str,
    type: Any,
    value: str,
    help: str,
    short: str = "",
    *,
    setting: str = "",
    panel: str | None = None,
    complete: Complete | None = None,
    least: int | None = None,
    default: Any = None,
) -> Option:
    """An option, in the panel of the help that its setting belongs to. One of a list type is
    repeatable, and one with an empty ``value`` (placeholder) a switch. ``least``: its smallest
    value."""
    panel = _PANELS.get(setting.partition(".")[0], HOW) if panel is None else panel
    info = typer.Option(
        "--" + name.replace("_", "-"), *([short] if short else []), metavar=value, help=help,
        rich_help_panel=panel or None, autocompletion=complete, min=least,
    )  # fmt: skip
    kind = bool if not value else type if default is not None else type | None
    return Option(name, kind, info, setting, default if value else False)


def switch(name: str, help: str, short: str = "", panel: str = HOW) -> Option:
    """An option without a value."""
    return option(name, bool, "", help, short, panel=panel)


def words(value: str, help: str, complete: Complete = words_of) -> Option:
    """The words of a command, among them settings as ``section.name=value``."""
    info = typer.Argument(metavar=value, help=help, autocompletion=complete)
    return Option("words", list[str] | None, info)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments and options given by the user."""

    options: tuple[Option, ...]
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def output(self) -> Output:
        """The output of the command."""
        values = self.values
        return Output(machine=values.get("json", False), quiet=values.get("quiet", False))

    @property
    def words(self) -> list[str]:
        """The words that are no settings."""
        return [word for word in self.values.get("words") or () if not _is_setting(word)]

    @property
    def overrides(self) -> list[str]:
        """The settings that options and words give, for ``load``; those of options name them."""
        found = []
        for option in self.options:
            value = self[option.name]
            if option.setting and value not in (None, []):
                text = json.dumps(value, ensure_ascii=False, default=str)
                found.append(f"{option.flag} {option.setting}={text}")
        if (place := self.values.get("on")) is not None:
            name, _, address = place.partition(":")
            found.append(f"--on place.name={json.dumps(name)}")
            found += [f"--on place.address={json.dumps(address)}"] if ":" in place else []
        return [*found, *(w for w in self.values.get("words") or () if _is_setting(w))]

    def in_environment(self) -> list[str]:
        """:attr:`overrides`, with the environment and the tasks that the first words name."""
        env, *tasks = self.words or [""]
        named = [f"ENV env.name={json.dumps(env)}"] if env else []
        named += [f"TASK env.tasks={json.dumps(tasks)}"] if tasks else []
        return [*named, *self.overrides]

    def expect_none(self, *names: str) -> None:
        """Raise ``ConfigError`` if options were given that a run that has begun does not take."""
        for option in self.options:
            if option.name in names and self[option.name] not in (None, []):
                raise ConfigError(f"{option.flag}: cannot be changed in a run that has begun")


def _is_setting(word: str) -> bool:
    """Whether a word is ``section.name=value``."""
    return "=" in word and "." in word.partition("=")[0]


def command(*options: Option) -> Callable[[Callable[[Arguments], int]], Callable[..., int]]:
    """Make a function a command: Typer sees the options, and the function gets them as one
    record."""

    def decorate(function: Callable[[Arguments], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def call(**values: Any) -> int:
            return function(Arguments(options, values))

        types = {option.name: Annotated[option.type, option.info] for option in options}
        call.__annotations__ = {**types, "return": int}
        call.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
            inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default,
                              annotation=types[option.name])
            for option in options
        ])  # fmt: skip
        return call

    return decorate


LANGUAGE_MODEL = "smollm2 or another pulled model, a folder, or org/name on the Hugging Face Hub"
ENVIRONMENT = words(
    "[ENV] [TASK...] [SETTING=VALUE...]", f"{', '.join(ENVIRONMENTS)}, or module:factory; its "
    "tasks; settings as section.name=value, which swarm-ui config lists",
)  # fmt: skip
CONFIG = option("config", Path, "FILE", "TOML file; see swarm-ui config", "-c", panel="")
MODEL = option(
    "model", str, "NAME", "base (the default; that of the run in replay), general, smollm2, a "
    "folder, org/name on the Hugging Face Hub, script:FILE, module:factory, or what --url serves",
    "-m", setting="model.name", complete=one_of(*SHIPPED_AGENTS, *PRETRAINED),
)  # fmt: skip
URL = option("url", str, "URL", "OpenAI-compatible endpoint, up to /v1 (default: OPENAI_BASE_URL)",
             setting="model.url")  # fmt: skip
ADAPTERS = option(
    "adapters", str, "FOLDER", "RUN/adapters of a trained team, or one adapter for all agents",
    setting="model.adapters", complete=one_of(*AGENT_ADAPTERS),
)  # fmt: skip
AGENTS = option("agents", int, "N", "their number (default: 1; in train 4)", "-a",
                setting="team.agents")  # fmt: skip
ROUNDS = option("rounds", int, "N", "of messages (default: 1; in train 3)", "-r",
                setting="team.rounds")  # fmt: skip
EDGES = option(
    "edges", str, "EDGES", f"random (the default), {', '.join(SHAPES)}, 'agent_0>agent_1,…', or a "
    "run or file of learned edges", setting="team.edges", complete=one_of("random", *SHAPES),
)  # fmt: skip
OUT = option("out", Path, "FOLDER", "folder for the run (default: runs/<date>-…)", "-o")
ON = option("on", str, "PLACE", "local, ray (on this machine, or as in RAY_ADDRESS), or "
            "ray:HOST:PORT", complete=one_of("local", "ray"))  # fmt: skip
JSON = switch("json", "one JSON object on standard output")
QUIET = switch("quiet", "do not show progress or notes", "-q")
FORCE = switch("force", "replace existing files", panel="")
TRUST = switch("trust", "let the settings in RUN import code and open connections")
DRY_RUN = switch("dry_run", "show what would be done, and stop")
RESUME = option("resume", Path, "RUN", "continue this run with its original settings")
ENDING = (CONFIG, RESUME, TRUST, DRY_RUN, JSON, QUIET)
