"""One episode: a policy acts in an environment until the end.

If the environment or the endpoint of the model fails, the episode has ``success=None`` and the
reason; this is never a reward of 0. A failure that the content of a reply causes
(:class:`ReplyError`) costs a step or fails the episode, and never masks it. Errors of the user
(:class:`ConfigError`) and exhausted budgets (:class:`BudgetExceeded`, with the episodes so far)
are raised.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.credit import SOLVER_CREDIT, as_matrix, proposals, unreadable
from swarm_ui.engine.plan import same_versions
from swarm_ui.engine.run import trace_of
from swarm_ui.environment import Environment, Graded, checker_version
from swarm_ui.errors import (
    BudgetExceeded,
    ConfigError,
    EnvironmentFault,
    Failure,
    ModelError,
    NodeError,
)
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Episode, StepRecord, Trace

WAIT = Action(action_type="wait")
SOLVED = 1.0

Job = tuple[str, int]
"""Task and seed of an episode."""
MakeEnvironment = Callable[[], Environment | Awaitable[Environment]]
Decide = Callable[[Observation, int, str], Coroutine[Any, Any, Trace]]
"""``(observation, seed, run) -> Trace``: one decision."""
Draw = Callable[[str, int], CollabGraph]
"""``(task, seed) -> graph``: the team for one episode."""


class Policy(Protocol):
    """Acts in episodes; one policy serves any number of them at the same time."""

    @property
    def name(self) -> str:
        """Name for tables, such as ``"base greedy"`` or ``"trained team"``."""
        ...

    def begin(self, *, task: str, seed: int) -> Decide:
        """Makes the decisions of one episode, and holds the state of the episode."""
        ...


def as_policy(given: Policy | CollabGraph) -> Policy:
    """The policy itself, or that of a graph. Raises ``ConfigError`` for anything else."""
    if isinstance(given, CollabGraph):
        return GraphPolicy(given)
    if not hasattr(given, "begin"):
        raise ConfigError(
            "expected a graph, or a policy with 'name' and 'begin', got an object of type "
            f"{type(given).__name__}"
        )
    return given


class GraphPolicy:
    """A team decides: the same graph in all episodes, or one drawn for each."""

    def __init__(self, graph: CollabGraph | Draw, *, name: str | None = None) -> None:
        """``graph``: a graph, or a function that draws one for an episode; ``name``: in tables; by
        default that of the graph."""
        self._graph = graph
        self.name = name or (graph.name if isinstance(graph, CollabGraph) else "drawn team")

    def begin(self, *, task: str, seed: int) -> Decide:
        source = self._graph
        graph = source if isinstance(source, CollabGraph) else source(task, seed)

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            return await graph.run(observation, seed=seed, run_id=run)

        return decide


class Intervention(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an intervention before a step is executed; its credit becomes that of the
    :class:`~swarm_ui.trace.records.StepRecord`."""

    credit: tuple[tuple[float | None, ...], ...] | None = None
    credit_source: str = ""
    rationale: tuple[str, ...] = ()
    execute: Action | None = None
    """Action to execute instead of the decision; ``None``: the decision itself."""
    note: Any = None
    """Anything picklable; see :attr:`~swarm_ui.trace.records.Episode.notes`."""


Intervene = Callable[[int, Trace, Environment], Awaitable[Intervention | None]]
"""``(number of the step, trace, environment)``: receives each decision while the environment is
still in the state of that decision.

On other machines a copy of it is called, in the process of the environment. So its random draws may
depend only on its own seed, ``trace.run`` and ``trace.seed``, never on the order of the calls, and
what it finds out it returns as a :attr:`Intervention.note`.
"""


async def rollout(
    environment: Environment,
    policy: Policy | CollabGraph,
    *,
    task: str,
    seed: int,
    intervention: Intervene | None = None,
    max_steps: int | None = None,
) -> Episode:
    """Play one episode; its ``success`` is true if the last reward is 1, ``None`` after a fault.

    Args:
        environment: the environment; it is not closed.
        policy: makes the decisions, whose seeds are derived from ``seed``.
        intervention: called with each decision before it is executed, to take a snapshot, to
            assign credit, or to replace the action (a guided rollout).
        max_steps: truncates the episode, if the environment does not before.
    """
    clock = asyncio.get_running_loop().time
    started, acting = clock(), as_policy(policy)
    steps: list[StepRecord] = []
    notes: list[object] = []
    spent: BudgetExceeded | None = None
    try:
        with same_versions():
            fault = await _play(
                environment, acting, (task, seed), intervention, max_steps, steps, notes
            )
    except BudgetExceeded as error:
        spent, fault = error, Failure.of(error)
    except (EnvironmentFault, ModelError, NodeError) as error:
        fault = Failure.of(error)
        if fault.by_model:  # the content of a reply: it costs a step
            fault = None
            if isinstance(error.partial, Trace):
                lost = StepRecord(trace=error.partial, truncated=True, note=str(Failure.of(error)))
                steps.append(lost)
    except msgspec.MsgspecError as error:  # the environment exchanges records
        fault = Failure.of(EnvironmentFault(f"a record of the environment is not valid: {error}"))
    episode = Episode(
        environment=environment.name,
        checker=checker_version(environment),
        task=task,
        seed=seed,
        policy=acting.name,
        steps=tuple(steps),
        success=None if fault is not None else bool(steps) and steps[-1].reward >= SOLVED,
        fault=fault,
        seconds=clock() - started,
        notes=tuple(notes) if any(note is not None for note in notes) else (),
    )
    if spent is not None:
        spent.episodes = (episode,)
        raise spent
    return episode


async def _play(
    environment: Environment,
    policy: Policy,
    job: Job,
    intervention: Intervene | None,
    max_steps: int | None,
    steps: list[StepRecord],
    notes: list[object],
) -> Failure | None:
    """Act until the episode ends, appending steps and notes; returns the fault, if any."""
    task, seed = job
    observation = await environment.reset(task=task, seed=seed)
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
        step = await environment.step(executed)
        full = index + 1 == max_steps and not step.terminated
        steps.append(
            StepRecord(
                trace=trace,
                executed=executed,
                reward=step.reward,
                terminated=step.terminated,
                truncated=step.truncated or full,
                note=step.note,
                credit=guidance.credit,
                credit_source=guidance.credit_source,
                rationale=guidance.rationale,
            )
        )
        notes.append(guidance.note)
        if step.fault is not None:
            return Failure(kind="environment", message=step.fault)
        if step.ended or full:
            return None
        observation = step.observation


async def _guidance(
    intervention: Intervene | None, index: int, trace: Trace, environment: Environment
) -> Intervention:
    """The result of the intervention. An unusable reply of its model, such as that of a critic,
    becomes a ``ModelError``, and so does not count as a failure of the policy."""
    if intervention is None:
        return Intervention()
    try:
        return await intervention(index, trace, environment) or Intervention()
    except (ModelError, NodeError) as error:
        if not Failure.of(error).by_model:
            raise
        raise ModelError(f"the intervention at step {index} failed: {error}") from error


def no_decision(trace: Trace) -> Failure | None:
    """The technical reason why there is no decision; ``None`` if there is one, or a model's reply
    is the reason.

    It is technical if the call of the output failed and not because of a reply, or if no model was
    asked in it and all that it received is lost in this way: an unreachable endpoint says nothing
    about the policy.
    """
    calls = {call.id: call for call in trace.calls}
    received = {id for call in trace.calls for id in call.heard}
    inside: dict[str, list[str]] = {}  # the last calls in each nested graph
    for call in trace.calls:
        if call.step is None and call.id not in received:
            inside.setdefault(call.id.rpartition("/")[0], []).append(call.id)

    def cause(id: str) -> Failure | None:
        call = calls.get(id)
        if call is None or call.completion is not None:
            return None
        if call.error is not None:
            return None if call.error.by_model else call.error
        causes = [cause(part) for part in inside.get(id) or call.heard]
        return causes[0] if causes and all(causes) else None

    found = None if trace.action is not None else cause(trace.output_id)
    if found is None:
        return None
    node = calls[trace.output_id].node
    return Failure(kind=found.kind, message=f"'{node}' has no answer: {found}", node=node)


async def solver_grades(index: int, trace: Trace, environment: Environment) -> Intervention | None:
    """An :class:`Intervene` that grades every proposal; the executed action is not changed.

    The credit of a message is 1.0 if its action brings the state nearer to success, else 0.0, also
    for a reply without a valid action. It is ``None`` if the environment cannot grade. An error of
    its solver is no fault: it is the rationale of a step without credit.
    """
    if not isinstance(environment, Graded):
        return None
    grades: dict[ActionKey, float] = {}
    values: dict[str, float | None] = dict.fromkeys(unreadable(trace), 0.0)
    try:
        for action, id in [(m.action, m.id) for m in proposals(trace) if m.action is not None]:
            if action.key not in grades:
                grades[action.key] = environment.grade(action)
            values[id] = grades[action.key]
    except EnvironmentFault as error:
        return Intervention(rationale=(f"not graded: {error}",))
    return Intervention(credit=as_matrix(trace, values), credit_source=SOLVER_CREDIT)


def spread_jobs(tasks: Sequence[str], n: int, seed: int, seeds: range) -> list[Job]:
    """``n`` episodes in random order, evenly spread over the tasks, with seeds out of ``seeds``;
    equal arguments give equal lists. Raises ``ConfigError`` if there is no task or no seed."""
    if n > 0 and not (tasks and seeds):
        raise ConfigError(
            f"cannot draw {n} episodes from {len(tasks)} tasks and {len(seeds)} seeds; give at "
            "least one of each"
        )
    rng = random.Random(seed)
    chosen: list[Job] = []
    while len(chosen) < n:
        cycle = rng.sample(tasks, len(tasks))
        chosen.extend((task, rng.choice(seeds)) for task in cycle[: n - len(chosen)])
    return chosen
