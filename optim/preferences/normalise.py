"""Advantages: credit relative to a group, with mean 0 and optionally variance 1.

The group of a message is the whole batch, the messages of its agent (one mean and deviation for
all agents is unstable), the messages of its agent in the same round, or the messages on the same
screen (the *anchor* of GiGPO).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from swarm_ui.credit import Matrix
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.critic import mean, screen_key
from swarm_ui.trace.records import Episode, StepRecord

By = Literal["batch", "agent", "agent and round", "state"]


class Normalised(msgspec.Struct, frozen=True, kw_only=True):
    """Advantages of a batch, in the shape of its credit."""

    values: tuple[tuple[Matrix | None, ...], ...]
    """``[episodes][steps][rounds][agents]``; ``None`` for unscored messages, and in the place of
    the matrix of a step without credit."""
    groups: int
    """Number of groups of at least two messages. The message of a smaller group gets 0."""


_KEYS: dict[By, Callable[[StepRecord, int, str], object]] = {
    "batch": lambda record, round, agent: "",
    "agent": lambda record, round, agent: agent,
    "agent and round": lambda record, round, agent: (agent, round),
    "state": lambda record, round, agent: screen_key(record.trace.observation),
}


def normalise(
    episodes: Sequence[Episode], *, by: By = "agent", scale: bool = True, floor: float = 1e-6
) -> Normalised:
    """Advantages from the credit in ``StepRecord.credit``.

    Unscored messages and masked episodes are not used and get ``None``.

    Args:
        episodes: a batch.
        by: the kind of group.
        scale: divide by the group's population standard deviation.
        floor: added to the deviation. A group of equal values gets 0 everywhere.
    """
    if by not in _KEYS:
        raise ConfigError(f"normalise: by must be one of {', '.join(_KEYS)}, got {by!r}")
    key = _KEYS[by]
    members: dict[object, list[float]] = {}
    for episode in episodes:
        for record in episode.steps if episode.success is not None else ():
            for round, row in enumerate(record.credit or ()):
                for agent, value in zip(record.trace.agents, row, strict=True):
                    if value is not None:
                        members.setdefault(key(record, round, agent), []).append(value)
    means = {group: mean(vs) for group, vs in members.items()}
    spreads = {
        group: math.sqrt(math.fsum((v - means[group]) ** 2 for v in vs) / len(vs))
        for group, vs in members.items()
    }

    def advantage(record: StepRecord, round: int, agent: str, value: float | None) -> float | None:
        if value is None:
            return None
        group = key(record, round, agent)
        difference = value - means[group]
        return difference / (spreads[group] + floor) if scale else difference

    def of_step(record: StepRecord) -> Matrix | None:
        return record.credit and tuple(
            tuple(
                advantage(record, k, *cell) for cell in zip(record.trace.agents, row, strict=True)
            )
            for k, row in enumerate(record.credit)
        )

    return Normalised(
        values=tuple(
            tuple(None if episode.success is None else of_step(r) for r in episode.steps)
            for episode in episodes
        ),
        groups=sum(len(vs) > 1 for vs in members.values()),
    )
