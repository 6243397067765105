"""Compare assigners of credit on recorded episodes.

python -m swarm_ui.optim.credit EPISODES.jsonl [--world MODULE:NAME] [--assigners MODULE:NAME]

Without more, the outcome, new screens, agreement and the credit that stands in the file are
compared. ``--world`` names what makes an environment, such as
``swarm_ui.environments.phone:PhoneEnvironment``: the episodes are played again in it for its
snapshots, and if it grades actions its verdict is the reference. ``--assigners`` names a function
without arguments that gives more assigners, such as counterfactual ones with the team's graph.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from swarm_ui.credit import EpisodeAssigner
from swarm_ui.environment import Graded
from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.optim.credit.analysis.calibration import calibration
from swarm_ui.optim.credit.analysis.compare import RecordedCredit, assess_all, compare
from swarm_ui.optim.credit.analysis.credit_plots import plot_comparison, plot_reliability
from swarm_ui.optim.credit.analysis.credit_tables import (
    calibration_table,
    comparison_table,
    judgement_table,
    ranks_table,
)
from swarm_ui.optim.credit.assigners.assigner import EachDecision, recall_states
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit, ScriptedCritic
from swarm_ui.optim.credit.assigners.progress_credit import AgreementCredit, NoveltyCredit
from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Episode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _options().parse_args(arguments)
    try:
        asyncio.run(_compare(options, Console()))
    except SwarmError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


async def _compare(options: argparse.Namespace, console: Console) -> None:
    episodes = read_jsonl(options.episodes)
    if not episodes:
        raise ConfigError(f"{options.episodes}: no episodes")
    assigners, reference = _assigners(options, episodes)
    states: list[Sequence[object]] | None = None
    if options.world is not None:
        make = named(options.world)
        states = [await recall_states(make, episode) for episode in episodes]
    assessed = [await assess_all(assigner, episodes, states) for assigner in assigners]
    comparison = compare(episodes, assessed, reference=options.reference or reference)
    truth = next((one.tables for one in assessed if one.name == comparison.reference), None)
    reports = [
        calibration(episodes, one.tables, truth)
        for one in assessed
        if one.name != comparison.reference
    ]
    console.print(comparison_table(comparison))
    console.print(judgement_table(comparison))
    console.print(ranks_table(comparison))
    console.print(calibration_table(reports))
    if options.plots is not None:
        plot_comparison(comparison, options.plots / "comparison.png")
        plot_reliability(reports, options.plots / "reliability.png")
    if options.json is not None:
        options.json.write_bytes(
            msgspec.json.encode({"comparison": comparison, "calibration": reports}) + b"\n"
        )


def _assigners(
    options: argparse.Namespace, episodes: Sequence[Episode]
) -> tuple[list[EpisodeAssigner], str]:
    """Who is compared, and who says what is right."""
    found: list[EpisodeAssigner] = [
        OutcomeCredit(),
        NoveltyCredit(),
        EachDecision(AgreementCredit()),
    ]
    reference = ""
    if any(record.credit is not None for episode in episodes for record in episode.steps):
        found.append(RecordedCredit())
        reference = "recorded"
    if options.world is not None:
        make = named(options.world)
        if isinstance(make(), Graded):
            critic = ScriptedCritic(make)
            found.insert(0, EachDecision(critic))
            reference = critic.name
    for place in options.assigners:
        for assigner in named(place)():
            whole = hasattr(assigner, "assess")
            found.append(assigner if whole else EachDecision(assigner))
    return found, reference


def named(place: str) -> Callable[..., Any]:
    """What ``MODULE:NAME`` names.

    Raises:
        ConfigError: it names nothing that can be called.
    """
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"'{place}': expected MODULE:NAME of something to call; {error}"
        ) from error
    if not callable(found):
        raise ConfigError(f"'{place}' is a {type(found).__name__}; expected something to call")
    return found  # type: ignore[no-any-return]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m swarm_ui.optim.credit",
        description="Compare assigners of credit on recorded episodes.",
    )
    parser.add_argument("episodes", type=Path, help="trace file (JSON lines, one episode a line)")
    parser.add_argument("--world", metavar="MODULE:NAME", help="what makes the environment")
    more = "function that gives more assigners; may be given more than once"
    parser.add_argument(
        "--assigners", metavar="MODULE:NAME", action="append", default=[], help=more
    )
    parser.add_argument("--reference", metavar="NAME", help="assigner that says what is right")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write two plots here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
