"""Options of commands, and the corresponding settings."""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from swarm_ui.cli.output import Output
from swarm_ui.environments.androidworld.environment import FAMILIES
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, read_draft, setting_text
from swarm_ui.experiment.environments import ENVIRONMENTS, spec_of
from swarm_ui.experiment.plugins.entry_points import Kind, plugin_names
from swarm_ui.experiment.plugins.run_loggers import LOGGERS
from swarm_ui.experiment.plugins.wrapping import WRAPPERS
from swarm_ui.experiment.settings import DEFAULT_METHOD
from swarm_ui.experiment.teams import SHAPES
from swarm_ui.nodes.models.pretrained.catalogue import AGENT_ADAPTERS, CRITIC_ADAPTERS, PRETRAINED
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS
from swarm_ui.prompts import FORMATS

PLAYED = ("environment", "model", "team", "run", "ray")
"""The sections of the configuration that ``eval`` reads."""
TRAINED = (*PLAYED, "critic", "train")
WHERE, WHO, HOW, LEARNING = "Where it acts", "Who acts", "How it runs", "Learning"
_PANELS = {
    "environment": WHERE, "model": WHO, "team": WHO, "train": LEARNING, "critic": LEARNING,
    "run": HOW, "ray": HOW, "": HOW,
}  # fmt: skip
"""Titles of option groups in the help, by section of the configuration."""
_LEARNING_DEFAULTS: dict[str, object] = {
    "train.iterations": 5, "train.episodes": 128, "train.seed": "0",
    "train.update.method": DEFAULT_METHOD, "environment.seed": "0",
    "team.temperature": "the endpoint's own, or 0 in this process",
    "synthesize.stray": "0", "finetune.method": "lora", "finetune.epochs": "1",
    "finetune.learning_rate": "1e-4",
}  # fmt: skip
"""Defaults of settings whose classes need torch, and defaults of zero, which are also shown."""


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Completion for a fixed list of words."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def named(kind: Kind, *names: str) -> Callable[[str], list[str]]:
    """Completion for names of this package and of plug-ins."""

    def complete(incomplete: str) -> list[str]:
        return one_of(*names, *plugin_names(kind))(incomplete)

    return complete


def tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion for tasks, in environments whose tasks are known without a device."""
    known_tasks = spec_of(ctx.params.get("env") or "phone").known_tasks
    known = known_tasks() if known_tasks is not None else ()
    return [name for name in known if name.startswith(incomplete)]


def declare(
    *names: str,
    value: str = "",
    help: str,
    panel: str = HOW,
    complete: Callable[..., list[str]] | None = None,
    least: int | None = None,
) -> Any:
    """An option for Typer.

    ``value`` is the placeholder of its value, empty for a switch; ``least``: the smallest number.
    """
    return typer.Option(
        *names, metavar=value, help=help, rich_help_panel=panel or None, autocompletion=complete,
        min=least,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """An option that several commands share."""

    name: str
    """Name of the parameter."""
    type: Any
    declaration: Any
    """The option's declaration for Typer."""
    setting: str = ""
    """The setting that the option sets, such as ``"team.agents"``; empty: none."""
    default: Any = None

    @property
    def flag(self) -> str:
        """Name of the option in error messages."""
        if isinstance(self.declaration, typer.models.ArgumentInfo):
            return str(self.declaration.metavar)
        names = [n for n in self.declaration.param_decls or () if n.startswith("--")]
        return names[0].partition("/")[0] if names else "--" + self.name.replace("_", "-")


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
        return Output(machine=self["json"], quiet=self.values.get("quiet", False))

    def draft(self, *sections: str, file: bool = True) -> Draft:
        """The settings from the options, from ``--set`` and from the file (if it is read).

        Options override ``--set``, which overrides the file. ``sections`` are those that the
        command reads. A ``--set`` for another section is a mistake. The file may have other
        sections, because it may serve several commands.
        """
        given = {
            option.setting: (option.flag, self[option.name])
            for option in self.options
            if option.setting and self[option.name] not in (None, [])
        }
        draft = read_draft(self["config"] if file else None, given, self["settings"] or ())
        for name, place in draft.places.items():
            known = name[0] in Config.__struct_fields__ and name[0] not in sections
            if known and place.startswith("--set "):
                reads = ", ".join(f"[{section}]" for section in sections)
                draft.mistakes.append(f"{place}: this command does not read it, only {reads}")
        return draft

    def given(self, *names: str) -> list[str]:
        """The flags of the options that the user gave."""
        options = {option.name: option for option in self.options}
        return [options[name].flag for name in names if self[name] not in (None, [])]


def command(
    *given: Option, defaults: Mapping[str, object] | None = None
) -> Callable[[Callable[[Arguments], int]], Callable[..., int]]:
    """Make a function a command: Typer sees the options, and the function gets them as one record.

    ``defaults``: the defaults of the command that differ from those of the configuration, by
    setting. The help shows the default of every setting.
    """
    options = tuple(_with_default(option, defaults or {}) for option in given)

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


def _with_default(option: Option, defaults: Mapping[str, object]) -> Option:
    """Add the default of the setting to the option's help, unless the help mentions a default."""
    section, _, name = option.setting.partition(".")
    own = getattr(Config(), section, None) if section else None
    value = {**_LEARNING_DEFAULTS, **defaults}.get(option.setting, getattr(own, name, None))
    needed = option.default in (..., inspect.Parameter.empty)
    if needed or value in (None, "", (), False) or "default" in option.declaration.help:
        return option
    declaration = copy.copy(option.declaration)
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    declaration.help = f"{declaration.help} (default: {shown})"
    return replace(option, declaration=declaration)


def option(
    name: str,
    type: Any,
    value: str,
    help: str,
    short: str = "",
    *,
    setting: str = "",
    panel: str | None = None,
    complete: Callable[..., list[str]] | None = None,
    least: int | None = None,
) -> Option:
    """An option with a value. Its panel in the help follows from the section of its setting.

    Args:
        name: name of the parameter, with underscores. A parameter of a list type is repeatable.
        value: the placeholder of the value.
        setting: the setting that the option sets, such as ``"team.agents"``.
        least: the smallest value that the option accepts, if the setting itself also accepts
            smaller ones.
    """
    names = ["--" + name.replace("_", "-"), *([short] if short else [])]
    panel = _PANELS[setting.partition(".")[0]] if panel is None else panel
    declaration = declare(
        *names, value=value, help=help, panel=panel, complete=complete, least=least
    )
    return Option(name, type | None, declaration, setting)


def argument(name: str, type: Any, value: str, help: str, setting: str,
             complete: Callable[..., list[str]]) -> Option:  # fmt: skip
    """An argument that may be left out."""
    declaration = typer.Argument(metavar=value, help=help, autocompletion=complete)
    return Option(name, type | None, declaration, setting)


def needed(name: str, type: Any, value: str, help: str) -> Option:
    """A required argument. If its type is a list, it can be given several times."""
    return Option(name, type, typer.Argument(metavar=value, help=help), default=...)


def switch(name: str, *names: str, help: str, panel: str = HOW) -> Option:
    """An option without a value."""
    return Option(name, bool, declare(*names, help=help, panel=panel), default=False)


def also_named(known: Option, name: str) -> Option:
    """The same option with an additional name."""
    declaration = copy.copy(known.declaration)
    declaration.param_decls = (*known.declaration.param_decls, name)
    return replace(known, declaration=declaration)


def expect_new(path: Path, force: bool) -> None:
    """Raise ``ConfigError`` if a file that a command would write exists."""
    if os.path.exists(path) and not force:  # which raises no error, whatever the name
        raise ConfigError(f"'{path}' exists; choose another name, or replace it with --force")


LANGUAGE_MODEL = "smollm2 or another pulled model, a folder, or org/name on the Hugging Face Hub"
_URL = "OpenAI-compatible endpoint, up to /v1 (default: OPENAI_BASE_URL, if it is set)"
Url = Annotated[str | None, declare(value="URL", help=_URL, panel=WHO)]
Json = Annotated[bool, declare("--json", help="one JSON object on standard output")]
Quiet = Annotated[bool, declare("--quiet", "-q", help="do not show progress or notes")]
Force = Annotated[bool, declare("--force", help="replace existing files", panel="")]

ENVIRONMENT = argument(
    "env", str, "ENV", f"{', '.join(ENVIRONMENTS)}, or module:factory",
    "environment.name", named("environments", *ENVIRONMENTS),
)  # fmt: skip
TASKS = argument(
    "task", list[str], "TASK", "tasks to run; default: the whole suite", "environment.tasks", tasks
)
TASK = option(
    "task", list[str], "NAME", "only this task; repeatable",
    setting="environment.tasks", complete=tasks,
)  # fmt: skip
_EPISODES = (
    "split of the tasks, such as new parameters or new apps (default: the first split of the "
    "environment)"
)
SPLIT = option("split", str, "NAME", _EPISODES, setting="environment.split")
SPLITS = option("split", list[str], "NAME", f"{_EPISODES}; repeatable", panel=WHERE)
SEED = option("seed", int, "N", "seed for choosing the episodes", setting="environment.seed")
SEEDS = option(
    "seed", list[int], "N", "seed for choosing the episodes (default: 0); repeatable", panel=WHERE,
    least=0,
)  # fmt: skip
PUBLISHED = Option(
    "published", bool | None,
    declare("--published", help="apply upstream's time limit, and report its reward (miniwob)",
            panel=WHERE), "environment.published",
)  # fmt: skip
MAX_STEPS = option(
    "max_steps",
    int,
    "N",
    "maximum number of steps of an episode (default: the environment's)",
    setting="environment.max_steps",
)
DATA = option(
    "data",
    str,
    "FOLDER",
    "your copy of Mind2Web or AutoWebBench (default: none)",
    setting="environment.data",
)
WRAP = option(
    "wrap", list[str], "NAME",
    f"wrap the environment: {', '.join(WRAPPERS)} (with options as in step-limit:steps=12), or "
    "module:callable; repeatable, the first is the innermost (default: none)",
    setting="environment.wrap", complete=named("wrappers", *WRAPPERS),
)  # fmt: skip
LOG = option(
    "log", list[str], "NAME",
    f"log metrics: {', '.join(LOGGERS)}, or module:factory; repeatable (default: only "
    "files in the run's folder)",
    setting="run.log", complete=named("loggers", *LOGGERS),
)  # fmt: skip
FAMILY = option(
    "family", str, "NAME", f"androidworld, handset: {', '.join(FAMILIES)}",
    setting="environment.family", complete=one_of(*FAMILIES),
)  # fmt: skip
MODEL = option(
    "model", str, "NAME",
    "base, general, smollm2, a folder, org/name on the Hugging Face Hub, script:FILE, "
    "module:factory, or a model that --url serves", "-m",
    setting="model.name", complete=named("models", *SHIPPED_AGENTS, *PRETRAINED),
)  # fmt: skip
LEARNER = also_named(MODEL, "--learner")
URL = option("url", str, "URL", _URL, setting="model.url")
CONFIG = option("config", Path, "FILE", "TOML file; see swarm-ui config", "-c", panel="")
SET = Option(
    "settings", list[str] | None,
    declare("--set", value="SECTION.NAME=VALUE", panel="",
            help="set any setting of the TOML file; repeatable"),
)  # fmt: skip
TEAM = (
    option("adapters", str, "FOLDER", "adapters of a trained team: RUN/adapters; or one adapter, "
           "for all agents: its folder, or smollm2-phone (default: none)",
           setting="model.adapters", complete=one_of(*AGENT_ADAPTERS)),
    option("prompt_format", str, "NAME", "format of prompts and replies: json or compact; default: "
           "the adapter's, or else the model's", setting="model.prompt_format",
           complete=one_of(*FORMATS)),
    option("agents", int, "N", "number of agents", "-a", setting="team.agents"),
    option("rounds", int, "N", "number of message rounds", "-r", setting="team.rounds"),
    option(
        "edges", str, "EDGES",
        "random, none, chain, debate, star, tree, 'agent_0>agent_1,…', or a run or file of learned "
        "edges",
        setting="team.edges", complete=one_of("random", *SHAPES),
    ),
    option("views", str, "VIEW", "what agents see: same (the whole screen), shuffle (its elements, "
           "in a different order for each agent), window (a part for each), or pane (one app of a "
           "divided screen for each)",
           setting="team.views", complete=one_of("same", "shuffle", "window", "pane")),
    option("vote", str, "RULE", "voting rule: majority or probability", setting="team.vote",
           complete=one_of("majority", "probability")),
    option("temperature", float, "T", "sampling temperature; 0 is greedy",
           setting="team.temperature"),
    option("temperatures", list[float], "T", "temperature of one agent, instead of --temperature; "
           "repeat it for each agent in turn (default: all have --temperature)",
           setting="team.temperatures"),
    CONFIG,
    SET,
)  # fmt: skip
INVENTED = (
    option("devices", int, "N", "invented: number of devices, of 8 apps each",
           setting="environment.devices"),
    option("wordings", str, "NAME", "invented: few or many wordings of each kind of goal",
           setting="environment.wordings", complete=one_of("few", "many")),
    option("apps", int, "N", "phone-split: number of apps on the screen, 4 to 10",
           setting="environment.apps"),
)  # fmt: skip
ACTING = (
    option("episodes", int, "N", "number of episodes (default: 20, or one for each named task)",
           "-n", setting="environment.episodes", least=1),
    MAX_STEPS, DATA, FAMILY, WRAP,
    *INVENTED,
    option("suite_seed", int, "N", "androidworld, handset: play upstream's suite for this seed, in "
           "upstream's order; upstream uses 30 (default: our own episodes)",
           setting="environment.suite_seed"),
    option("combinations", int, "N", "androidworld, handset: instances of each task in "
           "upstream's suite",
           setting="environment.combinations"),
    MODEL, URL, *TEAM,
)  # fmt: skip
OUT = option(
    "out", str, "FOLDER", "folder for the run (default: runs/<date>-…)", "-o", setting="run.out"
)
AGAINST = option("against", Path, "RUN", "compare with this run, episode by episode")
JSON = switch("json", "--json", help="one JSON object on standard output")
QUIET = switch("quiet", "--quiet", "-q", help="do not show progress or notes")
_TRUST = "let the settings in RUN import code, open connections and name the variable of a key"
TRUST = switch("trust", "--trust", help=_TRUST)
Trust = Annotated[bool, declare("--trust", help=_TRUST, panel="")]
ENDING = (
    option("resume", Path, "RUN", "continue this run with its original settings"),
    TRUST,
    switch("dry_run", "--dry-run", help="show what would be done, and stop"),
    JSON,
    QUIET,
)
ON = option(
    "on", str, "PLACE", "where episodes are played: local; ray, in workers of a Ray cluster on "
    "this machine (or the one in RAY_ADDRESS); or ray:HOST:PORT, a running cluster (default: "
    "local)", setting="run.on", complete=one_of("local", "ray"),
)  # fmt: skip
WORKERS = option(
    "workers", int, "N", "ray: maximum number of workers (default: as many as fit)",
    setting="ray.workers",
)  # fmt: skip
MODEL_ACTORS = option(
    "model_actors", int, "N", "ray: processes that hold the model for all workers; 0: each worker "
    "loads its own (default: 1, and 0 for the base agent)", setting="ray.model_actors",
)  # fmt: skip
PLAYING = (
    OUT,
    LOG,
    option("concurrency", int, "N", "number of concurrent episodes in this process", "-j",
           setting="run.concurrency"),
    ON, WORKERS, MODEL_ACTORS,
    option("fail_under", float, "SHARE", "exit with 1 if a smaller share is solved (default: "
           "1 for a run of one episode, else 0)",
           setting="run.fail_under"),
    option("max_masked", float, "SHARE", "report no success rate if faults ended a larger "
           "share of the episodes (default: 0.2)", setting="run.max_masked"),
    switch("per_task", "--per-task", help="also print a table of the tasks"),
    *ENDING,
)  # fmt: skip
TRAINING = (
    option("iterations", int, "N", "number of iterations of rollouts and updates",
           setting="train.iterations"),
    option("rollouts", int, "N", "episodes in each iteration", setting="train.episodes"),
    option("method", str, "NAME", "rft, dpo, ipo, grpo or gspo", setting="train.update.method",
           complete=one_of("rft", "dpo", "ipo", "grpo", "gspo")),
    option("learn_edges", str, "HOW", "redraw (new random edges in each iteration), fixed or "
           "learned (default: redraw; fixed if --edges is given)", setting="train.edges",
           complete=one_of("redraw", "fixed", "learned")),
    option("critic", str, "NAME", "who assigns credit: scripted (knows the simulated task), llm, "
           "learned or outcome; default: scripted where the environment has one, else outcome",
           setting="critic.kind", complete=one_of("scripted", "llm", "learned", "outcome")),
    option("critic_model", str, "NAME", "llm: the model that is asked, default: the agents' own; "
           "learned: the folder of the critic, or smollm2-critic", setting="critic.model",
           complete=one_of(*CRITIC_ADAPTERS)),
    option("critic_url", str, "URL", "llm: endpoint of the critic's model, up to /v1 "
           "(default: none)", setting="critic.url"),
    option("judge", str, "NAME", "who decides which proposals are right, to execute one of "
           "these instead of a wrong vote, and to grade the adversary's actions: scripted, llm or "
           "learned; default: the critic", setting="critic.judge",
           complete=one_of("scripted", "llm", "learned")),
    option("adversary", str, "NAME", "who writes mistakes: scripted, llm or none",
           setting="critic.adversary", complete=one_of("scripted", "llm", "none")),
    option("teacher", str, "NAME", "who shows a right action where no agent proposed one: "
           "scripted (the solver of a simulated environment), llm or none",
           setting="critic.teacher", complete=one_of("scripted", "llm", "none")),
    option("seed", int, "N", "equal seeds give equal runs", setting="train.seed"),
    option("actor", str, "URL", "vLLM server that acts with the learner's adapters (default: "
           "none, the learner acts)", setting="model.actor"),
)  # fmt: skip


def words(settings: Mapping[str, object]) -> list[str]:
    """The words of a command line of ``eval`` that give these settings."""
    options = {option.setting: option for option in (PUBLISHED, *ACTING)}
    found: list[str] = []
    for setting, value in settings.items():
        option = options.get(setting)
        if setting == "environment.name":
            found.append(str(value))
        elif setting == "environment.tasks" and isinstance(value, tuple):
            found += value
        elif option is None:
            found += ["--set", f"{setting}={setting_text(value)}"]
        elif value is True:
            found.append(option.flag)
        else:
            for one in value if isinstance(value, tuple) else [value]:
                found += [option.flag, str(one)]
    return found
