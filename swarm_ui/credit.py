"""Credit: one number for every message of an episode, and the two protocols that give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, runtime_checkable

import msgspec

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Episode, Trace

SOLVER_CREDIT = "scripted critic"
"""Source of credit that is the grade of the environment's own solver, without simulated errors."""

Matrix = tuple[tuple[float | None, ...], ...]
"""``[rounds, agents]`` as in ``trace.agents``; ``None`` = unscored."""


class Credit(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """Credit of the messages of one episode. An episode that a fault masked has none."""

    values: tuple[Matrix, ...]
    """Shape ``[steps, rounds, agents]``, each in [0, 1]; ``None`` = unscored, which is not 0. With
    ``signed`` each is a difference in [-1, 1]."""
    source: str = ""
    """The source of the credit, such as ``"scripted critic"``; shown with every figure."""
    rationale: tuple[tuple[str, ...], ...] = ()
    """Reasons for the credit: for each step a text for each round; empty: no reasons are given."""
    signed: bool = False
    """Whether a value is the difference a message made: 0 = none, below 0 = it did harm."""
    advantages: tuple[Matrix, ...] | None = None
    """The advantages of a policy gradient, where the credit is one: any numbers, of which
    ``values`` are the bounded form."""

    @classmethod
    def each(
        cls, episode: Episode, score: Callable[[Message, Trace], float | None], source: str = ""
    ) -> Self:
        """Credit by a function of a proposal and its decision, in [0, 1]; ``None``: unscored.

        It is called for every message with an action. A reply without a valid action gets 0.
        Abstentions and the messages of failed calls are unscored.
        """

        def scores(trace: Trace) -> dict[str, float | None]:
            values: dict[str, float | None] = dict.fromkeys(unreadable(trace), 0.0)
            return values | {m.id: score(m, trace) for m in proposals(trace)}

        steps = () if episode.success is None else episode.steps
        return cls.of(episode, [scores(record.trace) for record in steps], source=source)

    @classmethod
    def of(
        cls,
        episode: Episode,
        values: Sequence[Mapping[str, float | None]],
        *,
        source: str = "",
        signed: bool = False,
        advantages: Sequence[Mapping[str, float | None]] | None = None,
    ) -> Self:
        """Credit by message id for each step; other messages are unscored, and so is all of a
        masked episode."""
        if episode.success is None:
            return cls.unscored(episode, source, f"masked: {episode.fault}")

        def table(steps: Sequence[Mapping[str, float | None]]) -> tuple[Matrix, ...]:
            pairs = zip(episode.steps, steps, strict=True)
            return tuple(as_matrix(record.trace, known) for record, known in pairs)

        more = None if advantages is None else table(advantages)
        return cls(values=table(values), source=source, signed=signed, advantages=more)

    @classmethod
    def unscored(cls, episode: Episode, source: str = "", why: str = "") -> Self:
        """Credit of an episode in which nothing was scored, and why."""
        values = tuple(as_matrix(record.trace, {}) for record in episode.steps)
        told = tuple((why,) * len(matrix) for matrix in values) if why else ()
        return cls(values=values, source=source, rationale=told)

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(steps, rounds, agents)``; the largest number where steps differ."""
        rounds = max(map(len, self.values), default=0)
        return len(self.values), rounds, max((len(r) for m in self.values for r in m), default=0)

    @property
    def scored(self) -> int:
        """Number of messages with credit."""
        return sum(v is not None for matrix in self.values for row in matrix for v in row)

    def unit(self) -> Self:
        """The credit scaled to [0, 1]. A difference of 0 becomes 0.5: neither right nor wrong."""
        if not self.signed:
            return self
        halved = tuple(
            tuple(tuple(None if v is None else 0.5 + v / 2 for v in row) for row in matrix)
            for matrix in self.values
        )
        return msgspec.structs.replace(self, values=halved, signed=False)


class Critic(Protocol):
    """Gives credit to the messages of finished episodes."""

    async def __call__(self, episodes: Sequence[Episode], /) -> list[Credit]:
        """One record for each episode, in order. Masked episodes are unscored.

        A critic may compare the episodes with each other, ask models, or replay decisions. Its
        attribute ``name``, if it has one, is shown with its credit.
        """
        ...


@runtime_checkable
class Judge(Protocol):
    """Grades single actions while an episode is played: for guidance and negatives.

    A judge that needs the state of the environment, and is used for finished episodes too, also
    has ``async states(episode)``, which gives the state at each step.
    """

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """A grade in [0, 1] for each action, in the screen's indices; ``None``: it cannot tell.

        ``state``: a snapshot of the environment at this screen; ``None`` if it makes none.
        """
        ...


def proposals(trace: Trace) -> list[Message]:
    """The agents' messages that propose an action."""
    agents = frozenset(trace.agents)
    return [m for m in trace.messages if m.action is not None and m.sender in agents]


def unreadable(trace: Trace) -> list[str]:
    """Ids of the agents' replies in which no valid action could be read. Messages of calls that
    failed, and abstentions, are left out."""
    agents = frozenset(trace.agents)
    failed = {call.id for call in trace.calls if call.error is not None}
    return [
        m.id
        for m in trace.messages
        if m.action is None and m.error is not None and m.sender in agents and m.id not in failed
    ]


def as_matrix(trace: Trace, values: Mapping[str, float | None]) -> Matrix:
    """Values by message id as ``[rounds, agents]``; ``None`` where there is none."""
    ids = {(m.round, m.sender): m.id for m in trace.messages}
    return tuple(
        tuple(values.get(ids.get((r, agent), "")) for agent in trace.agents)
        for r in range(trace.rounds)
    )


def credited(episode: Episode, credit: Credit) -> Episode:
    """The episode, in which each step has its credit, scaled to [0, 1], with advantages, source and
    rationale. Raises ``ValueError`` if the credit has another number of steps."""
    found = credit.unit()
    nothing: tuple[None, ...] = (None,) * len(episode.steps)
    columns = (found.values, found.advantages or nothing, found.rationale or nothing)
    steps = [
        msgspec.structs.replace(
            record, credit=values, advantages=advantages, credit_source=found.source,
            rationale=rationale or (),
        )
        for record, values, advantages, rationale in zip(episode.steps, *columns, strict=True)
    ]  # fmt: skip
    return msgspec.structs.replace(episode, steps=tuple(steps))
