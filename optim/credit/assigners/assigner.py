"""Functions that assigners of credit share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import msgspec

from swarm_ui.credit import CreditAssigner, CreditTable, EpisodeAssigner, as_matrix
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode, Trace

States = Sequence[object] | None
"""The environment's snapshot at each decision of an episode."""
Tables = tuple[CreditTable, ...]
"""A credit table for each step of an episode."""


def calls_of(assigner: object) -> int | None:
    """Number of calls to agents and models so far, from the attribute ``calls`` of an object.

    ``None``: it does not count them.
    """
    calls: int | None = getattr(assigner, "calls", None)
    return calls


def by_episode(assigner: CreditAssigner | EpisodeAssigner) -> EpisodeAssigner:
    """The assigner as an :class:`~swarm_ui.credit.EpisodeAssigner`."""
    return assigner if isinstance(assigner, EpisodeAssigner) else PerDecision(assigner)


class EpisodeCredit(ABC):
    """An :class:`~swarm_ui.credit.EpisodeAssigner` that leaves masked episodes unscored."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    async def assess(self, episode: Episode, states: States = None) -> Tables:
        """A table for each step; see the class and :class:`~swarm_ui.credit.EpisodeAssigner`."""
        if episode.success is None:
            return unscored(episode, self.name)
        return await self._assess(episode, states)

    @abstractmethod
    async def _assess(self, episode: Episode, states: States) -> Tables: ...


class PerDecision(EpisodeCredit):
    """An assigner of single decisions, used for whole episodes."""

    def __init__(self, assigner: CreditAssigner) -> None:
        self._assigner = assigner

    @property
    def name(self) -> str:
        return self._assigner.name

    @property
    def calls(self) -> int | None:
        """Number of calls so far, or ``None`` if the assigner does not count them."""
        return calls_of(self._assigner)

    async def _assess(self, episode: Episode, states: States) -> Tables:
        check_states(episode, states, self.name)
        at = states or [None] * len(episode.steps)
        pairs = zip(episode.steps, at, strict=True)
        return tuple([await self._assigner.assign(record.trace, state) for record, state in pairs])


def delivered_messages(trace: Trace) -> tuple[str, ...]:
    """Ids of the agents' messages that can get credit, in the order they were sent.

    The message of a node that failed is left out. An abstention and an unreadable reply are not.
    """
    agents = frozenset(trace.agents)
    failed = {call.message for call in trace.calls if call.error is not None}
    return tuple(m.id for m in trace.messages if m.sender in agents and m.id not in failed)


def proposal_messages(trace: Trace) -> tuple[str, ...]:
    """Ids of the messages that can be right or wrong: proposals and unreadable replies."""
    wrong = unparsed_messages(trace)
    return tuple(m.id for m in trace.messages if m.action is not None or m.id in wrong)


def unparsed_messages(trace: Trace) -> set[str]:
    """Ids of replies in which no valid action could be read.

    Messages of nodes that failed, and abstentions, are left out.
    """
    failed = {call.message for call in trace.calls if call.error is not None}
    unread = {m.id for m in trace.messages if m.action is None and m.error is not None}
    return unread - failed


def unscored_decision(trace: Trace, source: str, why: str, signed: bool = False) -> CreditTable:
    """A table without credit."""
    reasons = (why,) * trace.rounds
    return CreditTable(values=as_matrix(trace, {}), source=source, rationale=reasons, signed=signed)


def unscored(episode: Episode, source: str) -> Tables:
    """Tables without credit, which a masked episode gets."""
    why = f"masked: {episode.fault}"
    return tuple(unscored_decision(record.trace, source, why) for record in episode.steps)


def check_states(episode: Episode, states: States, who: str) -> None:
    """Raise ``ConfigError`` if there is not one snapshot for each step."""
    if states is not None and len(states) != len(episode.steps):
        raise ConfigError(
            f"{who}: episode {episode.task}/{episode.seed} has {len(episode.steps)} steps but "
            f"{len(states)} snapshots were given; expected one taken at each decision"
        )


async def replay_snapshots(
    make_environment: Callable[[], Environment], episode: Episode
) -> tuple[object, ...]:
    """The environment's snapshot at each decision, from replaying a recorded episode.

    Raises:
        ConfigError: the environment has no snapshots, or shows screens that differ from the
            recorded ones.
    """
    environment = make_environment()
    where = f"episode {episode.task}/{episode.seed}"
    states: list[object] = []
    try:
        if not isinstance(environment, Restorable):
            raise ConfigError(
                f"{where}: '{environment.name}' has no snapshot() and restore(); "
                "this credit needs an environment that has both"
            )
        observation = await environment.reset(task=episode.task, seed=episode.seed)
        for number, record in enumerate(episode.steps):
            recorded = msgspec.structs.replace(record.trace.observation, png=None)
            if msgspec.structs.replace(observation, png=None) != recorded:
                raise ConfigError(
                    f"{where}: the replay shows another screen at step {number}; the episode was "
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
