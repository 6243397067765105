"""HTML reports for the runs of the command line."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from swarm_ui.experiment.stored import snapshot
from swarm_ui.report import write_report
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode, StepRecord


def run_report(*runs: Path, to: Path | None = None, refresh: int | None = None) -> Path:
    """Write the report of runs or trace files, with screenshots of the embedded phone.

    ``refresh`` (seconds between two pages of a run that plays), the other arguments and the errors:
    see :func:`~swarm_ui.report.write_report`.
    """
    now = ""
    if refresh is not None:
        now = (
            f"The run is playing: {snapshot(runs[0])}. Short episodes end first, so rates differ "
            "from those at the end."
        )
    return write_report(*runs, to=to, refresh=refresh, summary=now, illustrate=with_screenshots)


def with_screenshots(episode: Episode) -> Episode:
    """The episode with a screenshot of every screen, if it is one of the embedded phone, and if
    this version of the phone repeats it."""
    from swarm_ui.environments.base import at_once
    from swarm_ui.environments.phone import PhoneEnvironment

    phone = PhoneEnvironment(screenshots=True)
    if episode.environment != phone.name or episode.task not in phone.tasks:
        return episode
    observation = at_once(phone.reset(task=episode.task, seed=episode.seed))
    steps: list[StepRecord] = []
    for record in episode.steps:
        if replace(observation, png=None) != replace(record.trace.observation, png=None):
            return episode
        steps.append(replace(record, trace=replace(record.trace, observation=observation)))
        observation = at_once(phone.step(record.executed or WAIT)).observation
    return replace(episode, steps=tuple(steps))
