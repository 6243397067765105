"""Screenshots of recorded episodes, from playing them once more."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from swarm_ui.errors import SwarmError
from swarm_ui.rollout.episodes import WAIT
from swarm_ui.trace.records import Episode, StepRecord


def with_pictures(episodes: Sequence[Episode]) -> list[Episode]:
    """The same episodes, those on the embedded phone with a screenshot of every screen."""
    from swarm_ui.environments.phone import PhoneEnvironment

    return [_with_pictures(e) if e.environment == PhoneEnvironment().name else e for e in episodes]


def _with_pictures(episode: Episode) -> Episode:
    from swarm_ui.environments.phone import PhoneEnvironment

    phone = PhoneEnvironment(screenshots=True)
    observation = phone.begin(episode.task, episode.seed)
    steps: list[StepRecord] = []
    for record in episode.steps:
        if replace(observation, png=None) != replace(record.trace.observation, png=None):
            raise SwarmError(
                f"phone: episode {episode.task}/{episode.seed} played again shows another screen "
                f"at step {len(steps)}; it was recorded with another version"
            )
        steps.append(replace(record, trace=replace(record.trace, observation=observation)))
        observation = phone.act(record.executed or WAIT).observation
    return replace(episode, steps=tuple(steps))
