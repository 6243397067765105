"""Options that several commands share, and the settings they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli.config import Config, Draft, checked, drafted

WHERE, WHO, HOW = "Where it acts", "Who acts", "How it runs"

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="TOML file; see swarm-ui init")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.NAME=VALUE", help="any setting of the file"),
]
Environment = Annotated[
    str | None,
    typer.Argument(metavar="ENV", help="phone, miniwob, androidworld, handset, mind2web, or "
                   "module:factory"),
]  # fmt: skip
Suite = Annotated[
    str | None, typer.Option(metavar="NAME", help="phone: core, extended", rich_help_panel=WHERE)
]
Episodes = Annotated[
    int | None, typer.Option("--episodes", "-n", help="how many", rich_help_panel=WHERE)
]
MaxSteps = Annotated[
    int | None, typer.Option(metavar="N", help="cut an episode off", rich_help_panel=WHERE)
]
Data = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="your copy of Mind2Web", rich_help_panel=WHERE),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="base, a folder, script:FILE, "
                 "module:factory, or what --url serves", rich_help_panel=WHO),
]  # fmt: skip
Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="OpenAI-compatible endpoint, up to /v1", rich_help_panel=WHO),
]
Adapters = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="of a trained team: RUN/adapters", rich_help_panel=WHO),
]
Agents = Annotated[int | None, typer.Option("--agents", "-a", help="in the team",
                                            rich_help_panel=WHO)]  # fmt: skip
Rounds = Annotated[int | None, typer.Option("--rounds", "-r", help="of talk",
                                            rich_help_panel=WHO)]  # fmt: skip
Edges = Annotated[
    str | None,
    typer.Option(metavar="EDGES", help="random, none, chain, debate, star, tree, or "
                 "'agent_0>agent_1,…'", rich_help_panel=WHO),
]  # fmt: skip
Views = Annotated[
    str | None, typer.Option(metavar="VIEW", help="same, shuffle, window", rich_help_panel=WHO)
]
Vote = Annotated[
    str | None, typer.Option(metavar="RULE", help="majority, probability", rich_help_panel=WHO)
]
Temperature = Annotated[float | None, typer.Option(help="0: greedy", rich_help_panel=WHO)]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="of the run (runs/<date>-…)",
                 rich_help_panel=HOW),
]  # fmt: skip
Concurrency = Annotated[
    int | None,
    typer.Option("--concurrency", "-j", help="episodes at once", rich_help_panel=HOW),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="go on with a run, as it was set up", rich_help_panel=HOW),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="say what would be done, and stop", rich_help_panel=HOW)
]
Json = Annotated[
    bool, typer.Option("--json", help="one JSON object on standard output", rich_help_panel=HOW)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="no progress, no remarks", rich_help_panel=HOW)
]
FailUnder = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="exit with 1 if less is solved", rich_help_panel=HOW),
]

_SETTINGS = {
    "env": ("environment.name", "ENV"),
    "task": ("environment.tasks", "--task"),
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


def settled(
    config: Path | None, settings: list[str] | None, *, train: bool = False, **flags: object
) -> Config:
    """The configuration, checked. Raises ``ConfigError`` with all its mistakes."""
    return checked(draft(config, settings, **flags), train=train)
