"""A run of a command as the library's HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swarm_ui.cli.pictures import with_pictures
from swarm_ui.cli.results import Results, episodes_of, total
from swarm_ui.errors import SwarmError
from swarm_ui.report import ReportData, credit_map, page, write_report
from swarm_ui.storage.run_directory import RunDirectory, write_atomic
from swarm_ui.trace.records import Episode

_PICTURED = 30
"""Episodes whose screens are drawn as pictures, failed ones first."""


def report(run: RunDirectory, results: Results) -> Path:
    """Write the report of a run; returns its path."""
    episodes = [e for plan in results.plans for e in episodes_of(run.path, plan.name)]
    policies = dict.fromkeys(plan.policy for plan in results.plans if plan.policy)
    data = ReportData(
        title="; ".join(policies) or run.path.name,
        summary=summary(results),
        labels=(results.label,) if results.label else (),
        episodes=tuple(_pictured(_chosen(episodes))),
    )
    return write_report(run.path, data)


def training_report(run: RunDirectory) -> Path:
    """Write the report of a training run; returns its path."""
    from swarm_ui.report.run_reader import gathered

    kept = [e for part in gathered(run.path).sets for e in part.episodes]
    data = ReportData(
        title=run.path.name,
        summary="A team that learned from its own rollouts, of which a few of each iteration are "
        f"kept: {sum(e.success is True for e in kept)} of these {len(kept)} were solved.",
        episodes=tuple(_pictured(_chosen(kept))),
    )
    return write_report(run.path, data)


def loose_report(episodes: Sequence[Episode], path: Path, title: str) -> Path:
    """Write the report of episodes that belong to no run."""
    data = ReportData(
        title=title,
        summary=f"{len(episodes)} episodes, {sum(e.success is True for e in episodes)} solved.",
        heat_maps=tuple(filter(None, [credit_map(tuple(episodes))])),
        episodes=tuple(_pictured(episodes)),
    )
    write_atomic(path, page(data))
    return path


def summary(results: Results) -> str:
    """What came of it, in a sentence."""
    whole = total(results.plans)
    masked = f" {whole.masked} masked by faults." if whole.masked else ""
    return f"{whole.solved} of {whole.counted} episodes solved.{masked}"


def _chosen(episodes: Sequence[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda episode: bool(episode.success))[:_PICTURED]


def _pictured(episodes: Sequence[Episode]) -> list[Episode]:
    out: list[Episode] = []
    for episode in episodes:
        try:
            out += with_pictures([episode])
        except SwarmError:
            # Recorded with other settings of the phone: the elements are drawn instead.
            out.append(episode)
    return out
