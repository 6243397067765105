"""Assigners of credit that compare the episodes of a batch with each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from swarm_ui.action import ActionKey
from swarm_ui.credit import CreditTable, as_matrix
from swarm_ui.optim.credit.assigners.assigner import Tables, unscored
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Episode, StepRecord

Start = tuple[str, bytes]
"""Task and first screen. Attempts with the same task and first screen have equal starts."""


@runtime_checkable
class BatchAssigner(Protocol):
    """Gives credit to the messages of a batch of finished episodes."""

    @property
    def name(self) -> str: ...

    async def assess_batch(self, episodes: Sequence[Episode]) -> tuple[Tables, ...]:
        """The tables of each episode, one for each step; all ``None`` if a fault masked it."""
        ...


class BatchCredit(ABC):
    """A :class:`BatchAssigner` that calls no agents or models, and whose credit is signed.

    It leaves masked episodes unscored. The credit of a message depends on its action.
    """

    calls = 0
    """Number of model calls; always 0."""
    gives_advantages = False
    """Whether :meth:`_assess` gives advantages, which are any numbers, instead of credit in
    [-1, 1]."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    async def assess_batch(self, episodes: Sequence[Episode]) -> tuple[Tables, ...]:
        """See :class:`BatchAssigner`. Values are in [-1, 1]; 0 means neither right nor wrong."""
        played = [e for e in episodes if e.success is not None]
        found = iter(self._assess(played))
        return tuple(
            unscored(e, self.name)
            if e.success is None
            else tuple(map(self._table, e.steps, next(found)))
            for e in episodes
        )

    @abstractmethod
    def _assess(self, episodes: Sequence[Episode]) -> Sequence[Sequence[Mapping[str, float]]]:
        """Values by message id, for each step of each episode. No episode in ``episodes`` is
        masked."""

    def _table(self, record: StepRecord, values: Mapping[str, float]) -> CreditTable:
        found = as_matrix(record.trace, values)
        if not self.gives_advantages:
            return CreditTable(values=found, source=self.name, signed=True)
        bounded = as_matrix(record.trace, {id: squashed(v) for id, v in values.items()})
        return CreditTable(values=bounded, source=self.name, signed=True, advantages=found)


def start_of(episode: Episode) -> Start:
    """The start of an episode. Equal starts are different attempts at one task instance."""
    first = screen_key(episode.steps[0].trace.observation) if episode.steps else b""
    return episode.task, first


def by_start(episodes: Sequence[Episode]) -> dict[Start, list[int]]:
    """Numbers of the episodes by start, in order."""
    groups: dict[Start, list[int]] = {}
    for number, episode in enumerate(episodes):
        groups.setdefault(start_of(episode), []).append(number)
    return groups


def proposals(record: StepRecord) -> dict[str, ActionKey]:
    """Message id -> proposed action, for the agents' messages that propose one."""
    trace = record.trace
    return {
        m.id: m.action.key
        for m in trace.messages
        if m.action is not None and m.sender in trace.agents
    }


def squashed(value: float) -> float:
    """Map an unbounded advantage to (-1, 1); order and sign are kept."""
    return value / (1.0 + abs(value))
