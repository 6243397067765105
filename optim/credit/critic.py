"""The outcome and the environment's own grades as credit, and what critics share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from swarm_ui.action import Action
from swarm_ui.credit import SOLVER_CREDIT, Credit, Critic, Judge, proposals, unreadable
from swarm_ui.environment import Restorable, check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, LearningError
from swarm_ui.observation import Observation
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode, Trace


def name_of(critic: object) -> str:
    """The name of a critic or judge in tables and texts: its ``name``, or that of its class."""
    return str(getattr(critic, "name", "") or type(critic).__name__)


def judge_of(critic: object) -> Judge | None:
    """The judge of single actions that a critic is, or that it weighs; ``None``: it is none."""
    inner = getattr(critic, "critic", critic)
    return inner if isinstance(inner, Judge) else None


async def credit_of(critic: Critic, episodes: Sequence[Episode]) -> list[Credit]:
    """The credit that a critic gives, with its name as the source where it names none.

    Raises:
        LearningError: the critic returned something else than one :class:`Credit` of the right
            shape for each episode, or a number outside of its range.
    """
    found, name = cast("Any", await critic(episodes)), name_of(critic)
    listed = found if isinstance(found, list | tuple) else []
    if len(listed) != len(episodes) or not all(isinstance(each, Credit) for each in listed):
        raise LearningError(
            f"the critic '{name}' must return a list with one Credit for each of "
            f"{len(episodes)} episodes, got {found!r:.80}; see Credit.each and Credit.of"
        )
    for episode, credit in zip(episodes, listed, strict=True):
        wanted = [(record.trace.rounds, len(record.trace.agents)) for record in episode.steps]
        tables = [credit.values, *([credit.advantages] if credit.advantages is not None else [])]
        shapes = [[(len(m), *{len(row) for row in m}) for m in table] for table in tables]
        given: list[Any] = [v for matrix in credit.values for row in matrix for v in row]
        low, mistake = -1.0 if credit.signed else 0.0, ""
        right = [v is None or (isinstance(v, int | float) and low <= v <= 1.0) for v in given]
        if any(shape != wanted for shape in shapes):
            mistake = f"expected values of (rounds, agents) {wanted} in its steps, got {shapes}"
        elif not all(right):
            got = given[right.index(False)]
            mistake = f"expected numbers in [{low:g}, 1] or None, got {got!r}"
        elif episode.success is None and credit.scored:
            mistake = "a fault masked it, so nothing may be scored"
        if mistake:
            raise LearningError(
                f"the critic '{name}' gave wrong credit to episode "
                f"'{episode.task}/{episode.seed}': {mistake}"
            )
    return [c if c.source else msgspec.structs.replace(c, source=name) for c in listed]


async def states_of(judge: Judge, episode: Episode) -> Sequence[object]:
    """The state at each step, for a judge that needs it; ``None`` everywhere for the others."""
    states: Any = getattr(judge, "states", None)
    return [None] * len(episode.steps) if states is None else list(await states(episode))


async def judged(judge: Judge, episode: Episode) -> Credit:
    """A judge's grade of each proposal, of which equal ones are graded once, and 0.0 for a reply
    without a valid action; nodes that failed or abstained are unscored."""
    values: list[dict[str, float | None]] = []
    if episode.success is not None:
        states = await states_of(judge, episode)
        for trace, state in zip((r.trace for r in episode.steps), states, strict=True):
            said = proposed(trace)
            actions = {action.key: action for action in said.values()}
            grades = await judge.grade(trace.observation, list(actions.values()), state)
            known = dict(zip(actions, grades, strict=True))
            wrong = dict.fromkeys(unreadable(trace), 0.0)
            values.append({**wrong, **{id: known[action.key] for id, action in said.items()}})
    return Credit.of(episode, values, source=name_of(judge))


def proposed(trace: Trace) -> dict[str, Action]:
    """The action of each proposal, by the id of its message."""
    return {m.id: m.action for m in proposals(trace) if m.action is not None}


async def made_by(make_environment: Callable[[], Any]) -> Any:
    """A new environment from a function, which may be asynchronous."""
    made = make_environment()
    return await made if inspect.isawaitable(made) else made


def inmost(environment: Any) -> Any:
    """The environment without its wrappers. Its snapshots fit any other one of its class."""
    return getattr(environment, "innermost", environment)


class Outcome:
    """The episode's outcome as the credit of all its messages: learning *without* a critic.

    1.0 or 0.0 for all proposals and unreadable replies.
    """

    name = "outcome"

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See :class:`swarm_ui.Critic`."""
        found = list[Credit]()
        for episode in episodes:
            traces = [record.trace for record in episode.steps]
            scored = [[*(m.id for m in proposals(trace)), *unreadable(trace)] for trace in traces]
            values = [dict.fromkeys(ids, float(bool(episode.success))) for ids in scored]
            found.append(Credit.of(episode, values, source=self.name))
        return found


class Scripted:
    """A role that knows the solution: it asks an environment of its own, set to the same state."""

    name: str

    def __init__(self, make_environment: Callable[[], Any]) -> None:
        """``make_environment``: makes an environment with a solver, when one is first needed."""
        check_factory(make_environment)
        self._make, self._own = make_environment, None  # type: Any, Any

    async def made(self) -> Any:
        """A new environment. Raises ``ConfigError`` if it cannot grade."""
        environment = await made_by(self._make)
        own = inmost(environment)
        if not (isinstance(own, Restorable) and hasattr(own, "grade")):
            raise ConfigError(
                f"{self.name}: '{environment.name}' cannot grade actions; expected an environment "
                "with snapshot(), restore() and grade(). Use a language model in this role instead"
            )
        return environment

    async def restored(self, state: object | None) -> Any:
        """The own environment in a state. Raises ``ConfigError`` without a snapshot."""
        if state is None:
            raise ConfigError(
                f"{self.name}: no snapshot of the environment; it needs an environment with "
                "snapshot() and restore(). Use a language model in this role instead"
            )
        if self._own is None:
            self._own = inmost(await self.made())
        self._own.restore(state)
        return self._own

    def __getstate__(self) -> dict[str, object]:
        """The role as other processes get it: they make their own environment."""
        return {**self.__dict__, "_own": None}


class ScriptedCritic(Scripted):
    """Grades each distinct proposal with an environment of its own, set to the same state: by
    replaying the executed actions, so it also judges episodes from files and other processes. A
    :class:`~swarm_ui.credit.Judge` too."""

    name = SOLVER_CREDIT

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """1.0 for a proposal that brings the state nearer to success, else 0.0, also for a reply
        without a valid action; nodes that failed or abstained are unscored. Raises ``ConfigError``
        if the environment cannot grade, or a replay shows another screen."""
        found = list[Credit]()
        for episode in episodes:
            try:
                found.append(await judged(self, episode))
            except EnvironmentFault as error:
                found.append(Credit.unscored(episode, self.name, f"not graded: {error}"))
        return found

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """See :class:`swarm_ui.Judge`. Raises ``ConfigError`` without a snapshot."""
        own = await self.restored(state)
        return [own.grade(action) for action in actions]

    async def states(self, episode: Episode) -> list[object]:
        """A snapshot of the environment at each decision, from playing the episode again. Raises
        ``ConfigError`` if other screens are shown, and ``EnvironmentFault``."""
        where = f"{self.name}: episode {episode.task}/{episode.seed}"
        environment = await self.made()
        found: list[object] = []
        try:
            observation = await environment.reset(task=episode.task, seed=episode.seed)
            for number, record in enumerate(episode.steps):
                shown, recorded = (
                    msgspec.structs.replace(screen, png=None)
                    for screen in (observation, record.trace.observation)
                )
                if shown != recorded:
                    raise ConfigError(
                        f"{where}: the replay shows another screen at step {number}; give the "
                        "critic the environment, with its wrappers, in which it was played"
                    )
                found.append(inmost(environment).snapshot())
                if number + 1 < len(episode.steps):
                    step = await environment.step(record.executed or WAIT)
                    if step.fault is not None:
                        raise EnvironmentFault(f"{where}, step {number}: {step.fault}")
                    observation = step.observation
        finally:
            await environment.close()
        return found
