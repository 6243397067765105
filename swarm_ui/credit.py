"""Credit: one number for every message of a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.errors import LearningError
from swarm_ui.trace.records import Episode, Trace

SOLVER_CREDIT = "scripted critic"
"""Source of credit that is the grade of the environment's own solver, without simulated errors."""

Matrix = tuple[tuple[float | None, ...], ...]
"""``[rounds, agents]`` as in ``trace.agents``; ``None`` = unscored."""


def as_matrix(trace: Trace, values: Mapping[str, float]) -> Matrix:
    """Values by message id as ``[rounds, agents]``; ``None`` where there is none."""
    ids = {(m.round, m.sender): m.id for m in trace.messages}
    return tuple(
        tuple(values.get(ids.get((r, agent), "")) for agent in trace.agents)
        for r in range(trace.rounds)
    )


class CreditTable(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """Credit of one decision's messages."""

    values: Matrix
    """Shape ``[rounds, agents]`` as in ``trace.agents``, each in [0, 1]; ``None`` = unscored.
    With ``signed`` each is a difference in [-1, 1]."""
    source: str
    """The source of the credit, such as ``"scripted critic"``; shown with every figure."""
    rationale: tuple[str, ...] = ()
    """Reasons for the credit: a text for each round; empty: no reasons are given."""
    signed: bool = False
    """Whether a value is the difference a message made: 0 = none, below 0 = it did harm."""
    errors: Matrix | None = None
    """Standard error of each value, where it is an estimate from samples."""
    advantages: Matrix | None = None
    """The advantages of a policy gradient, where the credit is one: any numbers, of which
    ``values`` are the bounded form."""

    def unit(self) -> CreditTable:
        """The table scaled to [0, 1]. A difference of 0 becomes 0.5: neither right nor wrong."""
        if not self.signed:
            return self
        return msgspec.structs.replace(
            self,
            values=tuple(tuple(_half(v, 0.5) for v in row) for row in self.values),
            errors=self.errors and tuple(tuple(_half(v, 0.0) for v in row) for row in self.errors),
            signed=False,
        )


class CreditAssigner(Protocol):
    """Gives credit to the messages of one decision."""

    @property
    def name(self) -> str: ...

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """Credit for every message.

        Args:
            trace: the decision.
            state: the environment's snapshot at the decision, for critics that can use one.
        """
        ...


@runtime_checkable
class EpisodeAssigner(Protocol):
    """Gives credit to all messages of a finished episode.

    An assigner that needs only a decision is a :class:`CreditAssigner`, which can be called while
    the episode runs. :func:`swarm_ui.optim.credit.assigners.assigner.by_episode` converts it to
    an ``EpisodeAssigner``.
    """

    @property
    def name(self) -> str: ...

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """One table for each step; all ``None`` if a fault masked the episode.

        Args:
            episode: a finished episode.
            states: the environment's snapshot at each decision, for assigners that need one.
        """
        ...


async def assigned(critic: CreditAssigner, trace: Trace, state: object | None) -> CreditTable:
    """The table of a critic for one decision, scaled to [0, 1].

    Raises:
        LearningError: the critic returned something else.
    """
    found: object = critic.assign(trace, state)
    if isawaitable(found):
        found = await found
    if not isinstance(found, CreditTable):
        raise LearningError(
            f"the critic '{critic.name}' must return a CreditTable from assign(), got {found!r:.80}"
        )
    return found.unit()


def credited(episode: Episode, tables: Sequence[CreditTable]) -> Episode:
    """The episode, in which each step has its credit, scaled to [0, 1], with advantages, source and
    rationale.

    Raises:
        ValueError: the number of tables is not the number of steps.
    """
    steps = tuple(
        msgspec.structs.replace(
            record,
            credit=table.unit().values,
            advantages=table.advantages,
            credit_source=table.source,
            rationale=table.rationale,
        )
        for record, table in zip(episode.steps, tables, strict=True)
    )
    return msgspec.structs.replace(episode, steps=steps)


def _half(value: float | None, shift: float) -> float | None:
    return None if value is None else shift + value / 2
