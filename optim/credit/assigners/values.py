"""The value of a decision, in [0, 1], for counterfactual and Shapley credit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Protocol

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import CreditAssigner
from swarm_ui.engine.scheduler import together
from swarm_ui.environment import Environment, Restorable, Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.assigner import calls_of
from swarm_ui.optim.credit.assigners.critic import digest
from swarm_ui.optim.preferences.grading import score_of_action
from swarm_ui.rollout import WAIT, MakeEnvironment, Policy, rollout
from swarm_ui.rollout.episode import SOLVED, no_decision
from swarm_ui.trace.records import Trace

_Place = tuple[str, str, ActionKey]
"""What determines a continuation: the run, the screen with its history, and the action."""


class DecisionValue(Protocol):
    """Gives the value of a decision in its state."""

    @property
    def name(self) -> str: ...

    async def __call__(self, trace: Trace, state: object | None) -> float | None:
        """In [0, 1]; ``None`` if a fault prevented the decision or its evaluation.

        ``trace`` is the decision as recorded or as it would have been, ``state`` the environment's
        snapshot at it, if there is one.
        """
        ...


class CriticValue:
    """A critic's score of the chosen action, whoever proposed it; 0 if there is no decision.

    With a :class:`~swarm_ui.optim.credit.assigners.critic.ScriptedCritic` this is the
    environment's own grade.
    """

    def __init__(self, critic: CreditAssigner) -> None:
        self.name, self._critic = critic.name, critic

    @property
    def calls(self) -> int:
        """Number of calls of the critic so far."""
        return calls_of(self._critic) or 0

    async def __call__(self, trace: Trace, state: object | None) -> float | None:
        """The critic's score of the decision's action; see :class:`DecisionValue`."""
        if no_decision(trace) is not None:
            return None
        if trace.action is None:
            return 0.0
        return await score_of_action(self._critic, trace, trace.action, state)


class OutcomeValue:
    """Success of the episode when it continues from this decision.

    The decision is executed in an environment set to the same state, and a policy plays to the
    end. Equal decisions in the same state are played once. This is expensive, but needs no critic.
    """

    def __init__(
        self,
        make_environment: MakeEnvironment,
        policy: Policy,
        *,
        samples: int = 1,
        max_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        """
        Args:
            make_environment: makes environments that can restore the given snapshots.
            policy: plays after the decision.
            samples: number of continuations. One is enough if policy and environment are
                deterministic.
            max_steps: the maximum number of steps of each continuation.
            seed: the seed of the continuations.
        """
        if samples < 1:
            raise ConfigError(f"OutcomeValue: samples must be at least 1, got {samples}")
        self.name = f"outcome of {samples} continuation{'s' if samples > 1 else ''}"
        self._make_environment, self._policy = make_environment, policy
        self._samples, self._max_steps, self._seed = samples, max_steps, seed
        self._known: dict[_Place, float | None] = {}
        self._playing: dict[_Place, asyncio.Event] = {}
        self.played = 0
        """Continuations so far."""
        self.calls = 0
        """Calls of agents in them so far."""

    async def __call__(self, trace: Trace, state: object | None) -> float | None:
        """The success rate of the continuations of the decision; see :class:`DecisionValue`."""
        if state is None:
            raise ConfigError(
                f"{self.name}: no snapshot of the environment at run {trace.run}; "
                "it needs an environment with snapshot() and restore()"
            )
        if no_decision(trace) is not None:
            return None
        action = trace.action or WAIT
        if not trace.run:
            return await self._mean(trace, action, state)
        # Several teams may play one task and seed, so the run does not determine the state.
        screen = msgspec.structs.replace(trace.observation, png=None)
        place = (trace.run, digest(msgspec.json.encode(screen)), action.key)
        while place not in self._known:
            if place in self._playing:
                await self._playing[place].wait()
                continue
            self._playing[place] = asyncio.Event()
            try:
                self._known[place] = await self._mean(trace, action, state)
            finally:
                self._playing.pop(place).set()
        return self._known[place]

    async def _mean(self, trace: Trace, action: Action, state: object) -> float | None:
        ends = await together([self._end(trace, action, state, k) for k in range(self._samples)])
        known = [end for end in ends if end is not None]
        return sum(known) / len(known) if known else None

    async def _end(self, trace: Trace, action: Action, state: object, sample: int) -> float | None:
        made = self._make_environment()
        environment: Environment = await made if inspect.isawaitable(made) else made
        try:
            if not isinstance(environment, Restorable):
                raise ConfigError(
                    f"'{environment.name}' has no snapshot() and restore(); "
                    "OutcomeValue needs an environment that has both"
                )
            self.played += 1
            try:
                environment.restore(state)
                step = await environment.step(action)
            except EnvironmentFault:
                return None
            if step.fault is not None:
                return None
            if step.ended:
                return float(step.reward >= SOLVED)
            task = trace.run.rsplit("/", 2)[0]
            episode = await rollout(
                _Resumed(environment, step.observation),
                self._policy,
                task=task,
                seed=derive(self._seed, trace.run, sample),
                max_steps=self._max_steps,
            )
            self.calls += sum(len(record.trace.calls) for record in episode.steps)
            return None if episode.success is None else float(episode.success)
        finally:
            await environment.close()


class _Resumed:
    """An environment in the middle of an episode, for a rollout that starts there."""

    def __init__(self, environment: Environment, observation: Observation) -> None:
        self._environment, self._observation = environment, observation

    @property
    def name(self) -> str:
        return self._environment.name

    @property
    def tasks(self) -> Sequence[str]:
        return self._environment.tasks

    async def reset(self, *, task: str, seed: int) -> Observation:
        return self._observation

    async def step(self, action: Action) -> Step:
        return await self._environment.step(action)

    async def close(self) -> None: ...


class ReplayCost(msgspec.Struct, frozen=True):
    """The number of replays, and of the new calls that they made."""

    runs: int = 0
    calls: int = 0
    """New calls to nodes, without those taken from the record."""

    def __add__(self, other: ReplayCost) -> ReplayCost:
        return ReplayCost(self.runs + other.runs, self.calls + other.calls)


def new_calls(before: Trace, after: Trace) -> int:
    """The number of calls of agents that a replay made, without those from the record."""
    agents = frozenset(before.agents)
    old = {id(call) for call in before.calls}
    return sum(call.node in agents and id(call) not in old for call in after.calls)
