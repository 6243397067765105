"""Options that several commands share, and the settings they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from swarm_ui.cli import playing
from swarm_ui.cli.config import Config, Draft, EnvironmentSection, checked, drafted
from swarm_ui.cli.teams import SHAPES
from swarm_ui.cli.worlds import NAMES, SUITES

WHERE, WHO, HOW, LEARNING = "Where it acts", "Who acts", "How it runs", "Learning"


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Completion of a word that is one of a few."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion of a task, in environments that know theirs without a device."""
    from swarm_ui.cli.worlds import all_tasks

    env = ctx.params.get("env") or "phone"
    known = all_tasks(EnvironmentSection(name=env)) if env in ("phone", "miniwob") else ()
    return [name for name in known if name.startswith(incomplete)]


def option(*names: str, value: str = "", help: str, panel: str = HOW,
           complete: Callable[[str], list[str]] | None = None) -> Any:  # fmt: skip
    """An option. ``value``: what stands for its value in the help; empty: it is a switch."""
    return typer.Option(
        *names, metavar=value, help=help, rich_help_panel=panel or None, autocompletion=complete
    )


ConfigFile = Annotated[
    Path | None,
    option("--config", "-c", value="FILE", help="TOML file; see swarm-ui init", panel=""),
]
Set = Annotated[
    list[str] | None,
    option("--set", value="SECTION.NAME=VALUE", help="any setting of the file", panel=""),
]
Environment = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV",
        help="phone, miniwob, androidworld, handset, mind2web, or module:factory",
        autocompletion=one_of(*NAMES),
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(metavar="TASK", help="none: the suite", autocompletion=tasks),
]
Task = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="NAME", help="only this one; repeatable",
                 rich_help_panel=WHERE, autocompletion=tasks),
]  # fmt: skip
Split = Annotated[str | None, option(value="NAME", help="which episodes", panel=WHERE)]
Splits = Annotated[
    list[str] | None,
    option("--split", value="NAME", help="which episodes; repeatable", panel=WHERE),
]
Seed = Annotated[int | None, option(value="N", help="of the choice of episodes", panel=WHERE)]
Seeds = Annotated[
    list[int] | None,
    option("--seed", value="N", help="of a choice of episodes; repeatable", panel=WHERE),
]
Suite = Annotated[
    str | None,
    option(value="NAME", help="phone: core, extended", panel=WHERE, complete=one_of(*SUITES)),
]
Episodes = Annotated[
    int | None, option("--episodes", "-n", value="N", help="how many", panel=WHERE)
]
MaxSteps = Annotated[int | None, option(value="N", help="cut an episode off", panel=WHERE)]
Data = Annotated[str | None, option(value="FOLDER", help="your copy of Mind2Web", panel=WHERE)]
Model = Annotated[
    str | None,
    option("--model", "-m", value="NAME", panel=WHO, help="base, a folder, script:FILE, "
           "module:factory, or what --url serves"),
]  # fmt: skip
Url = Annotated[
    str | None, option(value="URL", help="OpenAI-compatible endpoint, up to /v1", panel=WHO)
]
Adapters = Annotated[
    str | None, option(value="FOLDER", help="of a trained team: RUN/adapters", panel=WHO)
]
Agents = Annotated[int | None, option("--agents", "-a", value="N", help="in the team", panel=WHO)]
Rounds = Annotated[int | None, option("--rounds", "-r", value="N", help="of talk", panel=WHO)]
Edges = Annotated[
    str | None,
    option(value="EDGES", panel=WHO, complete=one_of("random", *SHAPES),
           help="random, none, chain, debate, star, tree, 'agent_0>agent_1,…', or a run that "
           "learned them"),
]  # fmt: skip
Views = Annotated[
    str | None,
    option(value="VIEW", help="same, shuffle, window", panel=WHO,
           complete=one_of("same", "shuffle", "window")),
]  # fmt: skip
Vote = Annotated[
    str | None,
    option(value="RULE", help="majority, probability", panel=WHO,
           complete=one_of("majority", "probability")),
]  # fmt: skip
Temperature = Annotated[float | None, option(value="T", help="0: greedy", panel=WHO)]
Out = Annotated[
    str | None, option("--out", "-o", value="FOLDER", help="of the run (runs/<date>-…)")
]
Concurrency = Annotated[
    int | None, option("--concurrency", "-j", value="N", help="episodes at once")
]
Resume = Annotated[Path | None, option(value="RUN", help="go on with a run, as it was set up")]
DryRun = Annotated[bool, option("--dry-run", help="say what would be done, and stop")]
Json = Annotated[bool, option("--json", help="one JSON object on standard output")]
Quiet = Annotated[bool, option("--quiet", "-q", help="no progress, no remarks")]
Force = Annotated[bool, option("--force", help="replace what exists", panel="")]
FailUnder = Annotated[float | None, option(value="SHARE", help="exit with 1 if less is solved")]

Against = Annotated[
    Path | None, option(value="RUN", help="compare with this run, episode by episode")
]
Iterations = Annotated[
    int | None, option(value="N", help="of rollouts and updates", panel=LEARNING)
]
Rollouts = Annotated[
    int | None, option(value="N", help="episodes in each iteration", panel=LEARNING)
]
Method = Annotated[
    str | None,
    option(value="NAME", help="rft, dpo, ipo or pg", panel=LEARNING,
           complete=one_of("rft", "dpo", "ipo", "pg")),
]  # fmt: skip
LearnEdges = Annotated[
    str | None,
    option(value="HOW", help="redraw, fixed or learned", panel=LEARNING,
           complete=one_of("redraw", "fixed", "learned")),
]  # fmt: skip
Critic = Annotated[
    bool,
    option("--critic/--no-critic", help="the phone's scripted critic gives credit; else the "
           "outcome does", panel=LEARNING),
]  # fmt: skip
TrainSeed = Annotated[
    int | None, option(value="N", help="equal seeds give equal runs", panel=LEARNING)
]

_SETTINGS = {
    "env": ("environment.name", "ENV"),
    "task": ("environment.tasks", "task"),
    "suite": ("environment.suite", "--suite"),
    "split": ("environment.split", "--split"),
    "episodes": ("environment.episodes", "--episodes"),
    "seed": ("environment.seed", "--seed"),
    "max_steps": ("environment.max_steps", "--max-steps"),
    "data": ("environment.data", "--data"),
    "model": ("model.name", "--model"),
    "url": ("model.url", "--url"),
    "adapters": ("model.adapters", "--adapters"),
    "agents": ("team.agents", "--agents"),
    "rounds": ("team.rounds", "--rounds"),
    "edges": ("team.edges", "--edges"),
    "views": ("team.views", "--views"),
    "vote": ("team.vote", "--vote"),
    "temperature": ("team.temperature", "--temperature"),
    "out": ("run.out", "--out"),
    "concurrency": ("run.concurrency", "--concurrency"),
    "fail_under": ("run.fail_under", "--fail-under"),
    "iterations": ("train.iterations", "--iterations"),
    "rollouts": ("train.episodes", "--rollouts"),
    "learn_edges": ("train.edges", "--learn-edges"),
    "train_max_steps": ("train.max_steps", "--max-steps"),
    "train_seed": ("train.seed", "--seed"),
    "method": ("train.update.method", "--method"),
}


def draft(config: Path | None, settings: list[str] | None, **flags: object) -> Draft:
    """Flags over ``--set`` over the file. Flags that were not given are ``None`` or empty."""
    given = {
        _SETTINGS[name][0]: (_SETTINGS[name][1], value)
        for name, value in flags.items()
        if value is not None and value != []
    }
    return drafted(config, given, settings or ())


def settled(found: Draft, *, train: bool = False, splits: Sequence[str] = ()) -> Config:
    """The configuration, checked before anything is written or loaded.

    Args:
        found: what was given.
        train: it is for training.
        splits: these instead of the configuration's.

    Raises:
        ConfigError: all its mistakes.
    """
    return checked(
        found, train=train, look=lambda config, sound: playing.findings(config, sound, splits)
    )
