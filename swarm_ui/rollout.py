"""Episodes: a policy acts in an environment until it is over. Many at the same time.

Whatever breaks around the agent (the environment, the model's endpoint) gives an episode without
a success, ``success=None``, and the reason; it is never a reward of 0. What the user got wrong
(:class:`ConfigError`) or forbade (:class:`BudgetExceeded`) is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.errors import BudgetExceeded, ConfigError, EnvironmentFault, ModelError, NodeError
from swarm_ui.node import derive
from swarm_ui.policy import Policy
from swarm_ui.trace import Episode, StepRecord, Trace

WAIT = Action(action_type="wait")
SOLVED = 1.0


class Guidance(msgspec.Struct, frozen=True, kw_only=True):
    """What an observer of a step has to say before it is executed."""

    credit: tuple[tuple[float | None, ...], ...] | None = None
    """Credit of each message, ``[rounds, agents]``."""
    execute: Action | None = None
    """What to execute instead of the decision; ``None``: the decision."""


class Observe(Protocol):
    """Sees each decision while the environment still stands where it was made."""

    def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Awaitable[Guidance | None]: ...


OnStep = Callable[[int, StepRecord], None]

Job = tuple[str, int]
"""Task and seed."""

MakeEnvironment = Callable[[], Environment | Awaitable[Environment]]
Progress = Callable[[int, int, Episode], None]
"""``(episodes done, episodes in all, the one just done)``."""


async def rollout(
    environment: Environment,
    policy: Policy,
    *,
    task: str,
    seed: int,
    observe: Observe | None = None,
    on_step: OnStep | None = None,
    max_steps: int | None = None,
) -> Episode:
    """One episode.

    Args:
        environment: not closed here.
        policy: what decides.
        task, seed: of the episode; the decisions' seeds are derived from ``seed``.
        observe: called with each decision before it is executed, to take a snapshot, give credit
            or put another action in its place (a guided rollout).
        on_step: called with each finished step.
        max_steps: truncates the episode, if the environment does not before.

    Returns:
        the episode; ``success`` is true if the last step's reward is 1, ``None`` after a fault.
    """
    clock = asyncio.get_running_loop().time
    started = clock()
    steps: list[StepRecord] = []
    try:
        fault = await _play(environment, policy, task, seed, steps, observe, on_step, max_steps)
    except BudgetExceeded:
        raise
    except (EnvironmentFault, ModelError, NodeError) as error:
        fault = f"{type(error).__name__}: {error}"
    return Episode(
        environment=environment.name,
        task=task,
        seed=seed,
        policy=policy.name,
        steps=tuple(steps),
        success=None if fault is not None else steps[-1].reward >= SOLVED,
        fault=fault,
        seconds=clock() - started,
    )


async def _play(
    environment: Environment,
    policy: Policy,
    task: str,
    seed: int,
    steps: list[StepRecord],
    observe: Observe | None,
    on_step: OnStep | None,
    max_steps: int | None,
) -> str | None:
    """Act until the episode is over, filling ``steps``; returns the fault, if there was one."""
    observation = await environment.reset(task=task, seed=seed)
    decide = policy.begin(task=task, seed=seed)
    while True:
        index = len(steps)
        trace = await decide(observation, derive(seed, "step", index), f"{task}/{seed}/{index}")
        broken = no_decision(trace)
        if broken is not None:
            return broken
        guidance = None if observe is None else await observe(index, trace, environment)
        if guidance is None:
            guidance = Guidance()
        executed = guidance.execute or trace.action or WAIT
        step = await environment.step(executed)
        full = max_steps is not None and index + 1 >= max_steps and not step.terminated
        record = StepRecord(
            trace=trace,
            executed=executed,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated or full,
            note=step.note,
            credit=guidance.credit,
        )
        steps.append(record)
        if on_step is not None:
            on_step(index, record)
        if step.ended or full:
            return step.fault
        observation = step.observation


def no_decision(trace: Trace) -> str | None:
    """Why a decision did not come about for technical reasons; ``None`` if it did.

    Agents that all talk nonsense have decided nothing, and that counts. Agents that all failed to
    answer, or a vote that failed, are a fault: an unreachable endpoint is not a bad policy.
    """
    if trace.action is not None:
        return None
    agents = frozenset(trace.agents)
    asked = [call for call in trace.calls if call.node in agents]
    others = [c for c in trace.calls if c.node not in agents and "/" not in c.node and c.error]
    if others:
        return f"'{others[0].node}' failed: {others[0].error}"
    if asked and all(call.error for call in asked):
        return f"no agent answered; '{asked[0].node}': {asked[0].error}"
    return None


async def rollout_many(
    make_environment: MakeEnvironment,
    policy: Policy,
    jobs: Sequence[Job],
    *,
    concurrency: int = 8,
    progress: Progress | None = None,
    observe: Observe | None = None,
    retry: bool = True,
    max_steps: int | None = None,
) -> list[Episode]:
    """Play all jobs, up to ``concurrency`` at the same time.

    Args:
        make_environment: called at most ``concurrency`` times, and once more after each fault.
        policy: serves all episodes.
        jobs: (task, seed) pairs.
        progress: called after each episode, in the order they end.
        observe: see :func:`rollout`.
        retry: play an episode that ended in a fault once more, in a fresh environment.
        max_steps: see :func:`rollout`.

    Returns:
        episodes in the order of ``jobs``. All environments are closed, also if it is cancelled.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency must be at least 1, got {concurrency}")
    done: list[Episode | None] = [None] * len(jobs)
    waiting = iter(enumerate(jobs))
    finished = 0

    async def work() -> None:
        nonlocal finished
        seat = _Seat(make_environment)
        try:
            for place, (task, seed) in waiting:
                episode = await seat.play(policy, task, seed, observe, max_steps)
                if episode.fault is not None and retry:
                    episode = await seat.play(policy, task, seed, observe, max_steps)
                done[place] = episode
                finished += 1
                if progress is not None:
                    progress(finished, len(jobs), episode)
        finally:
            await seat.leave()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(jobs))):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return [episode for episode in done if episode is not None]


class _Seat:
    """One environment at a time, made when first needed and given up after a fault."""

    def __init__(self, make: MakeEnvironment) -> None:
        self._make = make
        self._environment: Environment | None = None
        self._name = ""

    async def play(
        self, policy: Policy, task: str, seed: int, observe: Observe | None, max_steps: int | None
    ) -> Episode:
        try:
            if self._environment is None:
                made = self._make()
                self._environment = await made if inspect.isawaitable(made) else made
                self._name = self._environment.name
        except EnvironmentFault as error:
            fault = f"{type(error).__name__}: {error}"
            return Episode(
                environment=self._name, task=task, seed=seed, policy=policy.name, fault=fault
            )
        episode = await rollout(
            self._environment, policy, task=task, seed=seed, observe=observe, max_steps=max_steps
        )
        if episode.fault is not None:
            # The episode already tells what broke; a broken world may well fail to close too.
            with contextlib.suppress(EnvironmentFault):
                await self.leave()
        return episode

    async def leave(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            await environment.close()
