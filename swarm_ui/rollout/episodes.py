"""Plays episodes: a policy acts in an environment until the end; many run concurrently.

If the environment or the endpoint of the model fails, the episode has ``success=None`` and the
reason; this is never a reward of 0. A failure that the content of a reply causes
(:class:`ReplyError`, an action outside all bounds) costs a step or fails the episode, and never
masks it. Errors of the user (:class:`ConfigError`) and exhausted budgets (:class:`BudgetExceeded`,
with the episodes so far) are raised. An episode uses the adapter versions of its first decision
until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Literal, Self, TypeVar

import msgspec

from swarm_ui.action import Action, unfit
from swarm_ui.engine.adapter_pins import same_versions
from swarm_ui.engine.executor import trace_of
from swarm_ui.environment import Environment, checker_version
from swarm_ui.errors import (
    BudgetExceeded,
    ConfigError,
    EnvironmentFault,
    Failure,
    ModelError,
    NodeError,
    SwarmError,
)
from swarm_ui.node import derive
from swarm_ui.rollout.episode_spans import HERE, SpanParent, in_span
from swarm_ui.rollout.intervention import Intervene as Intervene
from swarm_ui.rollout.intervention import Intervention as Intervention
from swarm_ui.rollout.policy import Policy, check_policy
from swarm_ui.rollout.pool import (
    Attempt,
    EnvironmentPool,
    EnvironmentTiming,
    Lap,
    Restarts,
)
from swarm_ui.rollout.pool import Job as Job
from swarm_ui.rollout.pool import MakeEnvironment as MakeEnvironment
from swarm_ui.rollout.rollouts import OnEpisode as OnEpisode
from swarm_ui.rollout.rollouts import OpenPolicy, PerWorker, play_jobs
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace
from swarm_ui.trace.worker_events import OnWorkerEvent

T = TypeVar("T")
WAIT = Action(action_type="wait")
SOLVED = 1.0


OnStep = Callable[[int, StepRecord], None]


async def rollout(
    environment: Environment,
    policy: Policy,
    *,
    task: str,
    seed: int,
    intervention: Intervene | None = None,
    on_step: OnStep | None = None,
    max_steps: int | None = None,
    lap: Lap | None = None,
) -> Episode:
    """Play one episode.

    Args:
        environment: the environment; it is not closed.
        policy: makes the decisions.
        task, seed: task and seed of the episode; the decisions' seeds are derived from ``seed``.
        intervention: called with each decision before it is executed, to take a snapshot, to
            assign credit, or to replace the action (a guided rollout).
        on_step: called with each finished step.
        max_steps: truncates the episode, if the environment does not before.
        lap: called with the duration in seconds of each reset and step of the environment.

    Returns:
        the episode; ``success`` is true if the last step's reward is 1, ``None`` after a fault.
    """
    clock = asyncio.get_running_loop().time
    started = clock()
    steps: list[StepRecord] = []
    spent: BudgetExceeded | None = None
    try:
        with same_versions():
            fault = await _play(
                environment, policy, task, seed, steps, intervention, on_step, max_steps, lap
            )
    except BudgetExceeded as error:
        spent, fault = error, Failure.of(error)
    except (EnvironmentFault, ModelError, NodeError, msgspec.MsgspecError) as error:
        fault = Failure.of(error)
        if fault.by_model:
            if isinstance(error, SwarmError) and isinstance(error.partial, Trace):
                lost = StepRecord(trace=error.partial, truncated=True, note=str(fault))
                steps.append(lost)
            fault = None
    episode = Episode(
        environment=environment.name,
        checker=checker_version(environment),
        task=task,
        seed=seed,
        policy=policy.name,
        steps=tuple(steps),
        success=None if fault is not None else bool(steps) and steps[-1].reward >= SOLVED,
        fault=fault,
        seconds=clock() - started,
    )
    if spent is not None:
        spent.episodes = (episode,)
        raise spent
    return episode


async def _play(
    environment: Environment,
    policy: Policy,
    task: str,
    seed: int,
    steps: list[StepRecord],
    intervention: Intervene | None,
    on_step: OnStep | None,
    max_steps: int | None,
    lap: Lap | None,
) -> Failure | None:
    """Act until the episode ends, appending to ``steps``; returns the fault, if any."""
    observation = await _timed(lap, "reset", environment.reset(task=task, seed=seed))
    decide = policy.begin(task=task, seed=seed)
    while True:
        index = len(steps)
        deciding = decide(observation, derive(seed, "step", index), f"{task}/{seed}/{index}")
        trace = await trace_of(deciding)
        broken = no_decision(trace)
        if broken is not None:
            return broken
        guidance = await _guidance(intervention, index, trace, environment)
        executed = guidance.execute or trace.action or WAIT
        refused = unfit(executed)
        if refused is not None:
            executed = WAIT
        step = await _timed(lap, "step", environment.step(executed))
        full = max_steps is not None and index + 1 >= max_steps and not step.terminated
        record = StepRecord(
            trace=trace,
            executed=executed,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated or full,
            note=step.note if refused is None else f"not executed: {refused}",
            credit=guidance.credit,
            credit_source=guidance.credit_source,
            rationale=guidance.rationale,
            expert=guidance.expert,
        )
        steps.append(record)
        if on_step is not None:
            on_step(index, record)
        if step.ended or full:
            if step.fault is None:
                return None
            return Failure(kind="environment", message=step.fault)
        observation = step.observation


async def _guidance(
    intervention: Intervene | None, index: int, trace: Trace, environment: Environment
) -> Intervention:
    """The result of the intervention. An unusable reply of its model, such as that of a critic,
    does not count as a failure of the policy.

    Raises:
        ModelError: a model of the intervention gave an unusable reply.
    """
    if intervention is None:
        return Intervention()
    try:
        return await intervention(index, trace, environment) or Intervention()
    except (ModelError, NodeError) as error:
        if not Failure.of(error).by_model:
            raise
        raise ModelError(f"the intervention at step {index} failed: {error}") from error


async def _timed(lap: Lap | None, what: Literal["reset", "step"], doing: Awaitable[T]) -> T:
    """Report the duration of an operation of the environment, also if it failed.

    Raises:
        EnvironmentFault: the environment failed, or exchanged records that are not valid.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        return await doing
    except msgspec.MsgspecError as error:
        raise EnvironmentFault(f"the environment's '{what}' failed: {error}") from error
    finally:
        if lap is not None:
            lap(what, clock() - began)


def no_decision(trace: Trace) -> Failure | None:
    """The technical reason why there is no decision; ``None`` if there is one.

    If no agent gives a valid reply, the episode counts as usual. If all agents failed to answer, or
    the output node or a vote failed or received only failures, this is a fault, because an
    unreachable endpoint says nothing about the policy. A failure that the content of a reply
    caused counts as a reply without a valid action.
    """
    if trace.action is not None:
        return None
    agents, lost = frozenset(trace.agents), _lost(trace)
    asked = [call for call in trace.calls if call.node in agents]
    if asked and all(call.message in lost for call in asked):
        return _fault(asked[0], lost, f"no agent answered; '{asked[0].node}'")
    for call in trace.calls:
        closes = call.node not in agents and "/" not in call.node
        if call.message in lost and (closes or call.message == trace.output_id):
            return _fault(call, lost, f"'{call.node}' failed")
    return None


def _fault(call: Call, lost: Mapping[str, Failure], told: str) -> Failure:
    """The failure of an episode that a lost message ended."""
    failure = lost[call.message]
    return Failure(kind=failure.kind, message=f"{told}: {failure}", node=call.node)


def _lost(trace: Trace) -> dict[str, Failure]:
    """The messages that hold no proposal for a technical reason, by id, with the reason.

    Their calls failed. Or no model was asked, and all that they are made of is lost: the messages
    that a vote received, or the last ones inside a nested graph.
    """
    errors = {message.id: message.error for message in trace.messages}
    received = {id for call in trace.calls for id in call.heard}
    inside: dict[str, list[str]] = {}
    lost: dict[str, Failure] = {}
    for call in sorted(trace.calls, key=lambda call: -call.message.count("/")):
        id = call.message
        if call.step is None and id not in received:
            inside.setdefault(id.rpartition("/")[0], []).append(id)
        if call.error is not None:
            if not call.error.by_model:
                lost[id] = call.error
        elif errors.get(id) is not None and not (call.model or call.prompt):
            parts = inside.get(id) or call.heard
            if parts and all(part in lost for part in parts):
                lost[id] = lost[parts[0]]
    return lost


async def rollout_stream(
    pool: EnvironmentPool,
    policy: Policy,
    jobs: Iterable[Job] | AsyncIterable[Job],
    *,
    intervention: Intervene | None = None,
    max_steps: int | None = None,
) -> AsyncGenerator[Episode, None]:
    """Play jobs in the environments of a pool; yields episodes in the order they finish.

    Args:
        pool: the environments; also sets concurrency and the behaviour after a fault.
        policy: serves all episodes.
        jobs: (task, seed) pairs, read only as fast as the episodes are played and consumed.
        intervention, max_steps: see :func:`rollout`.
    """
    attempt = attempt_of(policy, intervention, max_steps)
    async with aclosing(pool.episodes(attempt, jobs, actor=policy.name)) as episodes:
        async for _, episode in episodes:
            yield episode


async def rollout_many(
    make_environment: MakeEnvironment,
    policy: Policy,
    jobs: Sequence[Job],
    *,
    concurrency: int = 8,
    progress: OnEpisode | None = None,
    intervention: Intervene | None = None,
    retry: bool = True,
    max_steps: int | None = None,
) -> list[Episode]:
    """Play all jobs, up to ``concurrency`` at the same time.

    Args:
        make_environment: called at most ``concurrency`` times, and once more after each fault.
        policy: serves all episodes.
        jobs: (task, seed) pairs.
        progress: called after each episode, in the order they end.
        intervention: see :func:`rollout`.
        retry: play an episode with a fault once more, in a new environment.
        max_steps: see :func:`rollout`.

    Returns:
        episodes in the order of ``jobs``. All environments are closed, also after a cancellation.
    """
    if concurrency < 1:
        raise ConfigError(f"rollout_many: concurrency must be at least 1, got {concurrency}")
    size = max(1, min(concurrency, len(jobs)))
    restarts = Restarts(retries=int(retry))
    async with LocalRollout(make_environment, concurrency=size, restarts=restarts) as rollouts:
        return await play_jobs(
            rollouts,
            policy,
            jobs,
            progress=progress,
            intervention=intervention,
            max_steps=max_steps,
        )


class LocalRollout:
    """Plays episodes in this process; a :class:`~swarm_ui.rollout.rollouts.Rollouts`."""

    def __init__(
        self,
        make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
        *,
        concurrency: int = 8,
        restarts: Restarts | None = None,
        on_event: OnWorkerEvent | None = None,
    ) -> None:
        """
        Args:
            make_environment: called at most ``concurrency`` times, and once more after each fault.
            concurrency: maximum number of concurrent episodes.
            restarts: what happens after a fault; by default the episode is played again once.
            on_event: called with what each place does.
        """
        if concurrency < 1:
            raise ConfigError(f"LocalRollout: concurrency must be at least 1, got {concurrency}")
        self._make, self._size, self._restarts = make_environment, concurrency, restarts
        self._on_event = on_event
        self._pool: EnvironmentPool | None = None
        self._stack, self._policy = AsyncExitStack(), OpenPolicy()

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent episodes."""
        return self._size

    @property
    def timings(self) -> tuple[EnvironmentTiming, ...]:
        """The counts and durations of every environment so far."""
        return () if self._pool is None else self._pool.timings

    async def stream(
        self,
        policy: Policy | PerWorker[Policy],
        jobs: Iterable[Job] | AsyncIterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; see :meth:`swarm_ui.rollout.rollouts.Rollouts.stream`."""
        if self._pool is None:
            made = self._make
            make = await made.opened(self._stack) if isinstance(made, PerWorker) else made
            self._pool = EnvironmentPool(
                make, self._size, restarts=self._restarts, on_event=self._on_event
            )
        acting = await self._policy.take(policy)
        attempt = attempt_of(acting, intervention, max_steps)
        async with aclosing(self._pool.episodes(attempt, jobs, actor=acting.name)) as episodes:
            async for number, episode in episodes:
                yield number, episode

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice.

        Raises:
            EnvironmentFault: an environment could not be closed; all others are closed.
        """
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        pool, self._pool = self._pool, None
        try:
            if pool is not None:
                await pool.__aexit__(kind, error, trace)
        finally:
            try:
                await self._policy.close()
            finally:
                await self._stack.aclose()


def attempt_of(
    policy: Policy,
    intervention: Intervene | None,
    max_steps: int | None,
    parent: SpanParent = HERE,
) -> Attempt:
    """A function that plays episodes of a stream. ``parent``: the parent of their spans."""
    check_policy(policy)

    async def attempt(environment: Environment, task: str, seed: int, lap: Lap) -> Episode:
        play = partial(
            rollout, environment, policy, task=task, seed=seed, intervention=intervention,
            max_steps=max_steps, lap=lap,
        )  # fmt: skip
        return await in_span(parent, task, seed, play)

    return attempt
