"""Credit relative to its like: an advantage with mean 0, and if so set variance 1.

A message is compared with all of a batch, with its own agent's (agents differ: one mean and
deviation for all is unstable), with its agent's in the same round, or with what was said on the
same screen (an *anchor*, after GiGPO: equal screens are a fair group however they were reached).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Episode, StepRecord

By = Literal["batch", "agent", "agent and round", "state"]


class Normalised(msgspec.Struct, frozen=True, kw_only=True):
    """Advantages of a batch, in the places of the credit they come from."""

    values: tuple[tuple[tuple[tuple[float | None, ...], ...] | None, ...], ...]
    """``[episodes][steps][rounds][agents]``; ``None`` where the credit was, or a step's whole
    matrix where it had none."""
    groups: int
    """Groups of at least two messages; others have nothing to be compared with and get 0."""


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

    Unscored messages and masked episodes are in no mean and get ``None``.

    Args:
        episodes: a batch.
        by: what makes a group.
        scale: divide by the group's standard deviation (of its members, over ``n``).
        floor: added to the deviation; a group of equal values gets 0 everywhere.
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
    means = {group: _mean(vs) for group, vs in members.items()}
    spreads = {
        group: math.sqrt(math.fsum((v - means[group]) ** 2 for v in vs) / len(vs))
        for group, vs in members.items()
    }

    def advantage(record: StepRecord, round: int, agent: str, value: float) -> float:
        group = key(record, round, agent)
        difference = value - means[group]
        return difference / (spreads[group] + floor) if scale else difference

    return Normalised(
        values=tuple(
            tuple(
                None
                if episode.success is None or record.credit is None
                else tuple(
                    tuple(
                        None if v is None else advantage(record, round, agent, v)
                        for v, agent in zip(row, record.trace.agents, strict=True)
                    )
                    for round, row in enumerate(record.credit)
                )
                for record in episode.steps
            )
            for episode in episodes
        ),
        groups=sum(len(vs) > 1 for vs in members.values()),
    )


def _mean(values: Sequence[float]) -> float:
    # The rounded mean of equal values need not be their value, and the floor would not hide it.
    equal = min(values) == max(values)
    return values[0] if equal else math.fsum(values) / len(values)
