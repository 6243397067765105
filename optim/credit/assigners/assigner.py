"""What all assigners share: one table a step, masked where it must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.credit import CreditAssigner, CreditTable, Matrix
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.rollout.episodes import WAIT
from swarm_ui.trace.records import Episode, Trace


@runtime_checkable
class Counting(Protocol):
    """An assigner that counts the calls it makes to agents and models."""

    @property
    def calls(self) -> int: ...


class EachDecision:
    """An assigner of single decisions as one of whole episodes."""

    def __init__(self, assigner: CreditAssigner) -> None:
        self._assigner = assigner

    @property
    def name(self) -> str:
        return self._assigner.name

    @property
    def calls(self) -> int:
        """Calls so far; missing (``AttributeError``) if the assigner does not count them."""
        if not isinstance(self._assigner, Counting):
            raise AttributeError(f"{self.name} does not count its calls")
        return self._assigner.calls

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """See :class:`~swarm_ui.credit.EpisodeAssigner`."""
        if episode.success is None:
            return unscored(episode, self.name)
        check_states(episode, states, self.name)
        return tuple(
            [
                await self._assigner.assign(record.trace, None if states is None else states[k])
                for k, record in enumerate(episode.steps)
            ]
        )


def as_matrix(trace: Trace, values: Mapping[str, float]) -> Matrix:
    """Values by message id as ``[rounds, agents]``; ``None`` where there is none."""
    ids = {(m.round, m.sender): m.id for m in trace.messages}
    return tuple(
        tuple(values.get(ids.get((r, agent), "")) for agent in trace.agents)
        for r in range(trace.rounds)
    )


def spoken(trace: Trace) -> tuple[str, ...]:
    """Ids of the agents' messages that can deserve something, in the order they were said.

    A node that failed has said nothing; one that passed, or that talked nonsense, has.
    """
    agents = frozenset(trace.agents)
    failed = {call.message for call in trace.calls if call.error is not None}
    return tuple(m.id for m in trace.messages if m.sender in agents and m.id not in failed)


def answers(trace: Trace) -> tuple[str, ...]:
    """Ids of the messages that can be right or wrong: proposals, and what should have been one."""
    wrong = unparsed(trace)
    return tuple(m.id for m in trace.messages if m.action is not None or m.id in wrong)


def unparsed(trace: Trace) -> set[str]:
    """Ids of messages that should hold a valid action and do not, through the agent's own doing.

    A node that failed is not among them, and neither is one that passed.
    """
    failed = {call.message for call in trace.calls if call.error is not None}
    return {
        m.id
        for m in trace.messages
        if m.action is None and m.error is not None and m.id not in failed
    }


def blank(trace: Trace) -> Matrix:
    """No credit for anybody."""
    return as_matrix(trace, {})


def unscored(episode: Episode, source: str, why: str = "") -> tuple[CreditTable, ...]:
    """No credit anywhere: what a masked episode gets."""
    why = why or f"masked: {episode.fault}"
    return tuple(
        CreditTable(
            values=blank(record.trace), source=source, rationale=(why,) * record.trace.rounds
        )
        for record in episode.steps
    )


def check_states(episode: Episode, states: Sequence[object] | None, who: str) -> None:
    """Raises ``ConfigError`` if there is not one snapshot a step."""
    if states is not None and len(states) != len(episode.steps):
        raise ConfigError(
            f"{who}: episode {episode.task}/{episode.seed} has {len(episode.steps)} steps but "
            f"{len(states)} snapshots were given; expected one taken at each decision"
        )


async def recall_states(
    make_environment: Callable[[], Environment], episode: Episode
) -> tuple[object, ...]:
    """The environment's snapshot at each decision, from playing a recorded episode once more.

    Raises:
        ConfigError: the environment has no snapshots, or shows other screens than were recorded.
    """
    environment = make_environment()
    where = f"episode {episode.task}/{episode.seed}"
    if not isinstance(environment, Restorable):
        raise ConfigError(f"{where}: '{environment.name}' has no snapshot() and restore()")
    states: list[object] = []
    try:
        observation = await environment.reset(task=episode.task, seed=episode.seed)
        for number, record in enumerate(episode.steps):
            recorded = msgspec.structs.replace(record.trace.observation, png=None)
            if msgspec.structs.replace(observation, png=None) != recorded:
                raise ConfigError(
                    f"{where}: played again it shows another screen at step {number}; it was "
                    "recorded with another version or another environment"
                )
            states.append(environment.snapshot())
            if number + 1 < len(episode.steps):
                step = await environment.step(record.executed or WAIT)
                if step.fault is not None:
                    raise EnvironmentFault(f"{where}, step {number}: {step.fault}")
                observation = step.observation
    finally:
        await environment.close()
    return tuple(states)
