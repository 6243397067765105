"""A critic that errs, and a judge that plays on to the end of the episode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import Credit, Critic, Matrix
from swarm_ui.environment import Environment, Step
from swarm_ui.errors import EnvironmentFault
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.critic import credit_of, inmost, judge_of, made_by, name_of, screen_key
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.rollout import Policy, rollout
from swarm_ui.rollout.episode import SOLVED
from swarm_ui.trace.records import Episode, StepRecord


class NoisyCritic:
    """Adds errors to the scores of a critic, and to the grades of the judge that it is.

    An error is drawn once for each screen and proposal, because a real critic repeats its errors.
    """

    def __init__(
        self, critic: Critic, *, flip: float = 0.0, anti: bool = False, seed: int = 0
    ) -> None:
        """
        Args:
            critic: gives the scores without errors.
            flip: share of scores ``s`` that become ``1 - s``.
            anti: whether every score is inverted first, so that the critic prefers wrong actions.
            seed: decides which scores are inverted.
        """
        self._critic, self._flip, self._anti, self._seed = critic, flip, anti, seed
        parts = [f"{100 * flip:g} % errors" if flip else "", "inverted" if anti else ""]
        self.name = ", ".join([name_of(critic), *filter(None, parts)])

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """The critic's credit with errors. Unscored messages stay unscored."""
        given = [credit.unit() for credit in await credit_of(self._critic, episodes)]
        return [
            msgspec.structs.replace(
                credit,
                values=tuple(map(self._worse, episode.steps, credit.values)),
                source=self.name,
                errors=None,
            )
            for episode, credit in zip(episodes, given, strict=True)
        ]

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """The judge's grades with the same errors."""
        judge = judge_of(self._critic)
        assert judge is not None, f"{self.name} judges no single actions"
        grades = await judge.grade(observation, actions, state)
        return [
            self._turned(observation, repr(a.key), g) for a, g in zip(actions, grades, strict=True)
        ]

    def _worse(self, record: StepRecord, matrix: Matrix) -> Matrix:
        said = {(m.round, m.sender): m for m in record.trace.messages}

        def cell(score: float | None, round: int, agent: str) -> float | None:
            if score is None:
                return None
            message = said[round, agent]
            what = repr(message.action.key) if message.action else message.content
            return self._turned(record.trace.observation, what, score)

        return tuple(
            tuple(cell(v, r, a) for v, a in zip(row, record.trace.agents, strict=True))
            for r, row in enumerate(matrix)
        )

    def _turned(self, observation: Observation, what: str, score: float | None) -> float | None:
        if score is None:
            return None
        draw = derive(self._seed, screen_key(observation).hex(), what) / 2**53
        return 1.0 - score if (draw < self._flip) != self._anti else score


class Moment(NamedTuple):
    """A state of an episode."""

    run: str
    """The run that decided there; it names the seed of the continuation."""
    snapshot: object


class OutcomeJudge:
    """The outcome of an episode that goes on after an action.

    The action is executed in an environment set to the same state, and a deterministic policy plays
    to the end. Equal actions in one run and screen are played once. This is expensive, but needs no
    critic.
    """

    name = "outcome of a continuation"

    def __init__(self, make_environment: Callable[[], Any], policy: Policy) -> None:
        """
        Args:
            make_environment: makes environments in which the episodes can be played again.
            policy: plays after the action.
        """
        self._make, self._policy = make_environment, policy
        self._replays = ScriptedCritic(make_environment)
        self._known: dict[tuple[str, bytes, ActionKey], asyncio.Task[float | None]] = {}
        self.calls = 0
        """Calls of agents in continuations so far."""

    async def states(self, episode: Episode) -> list[Moment]:
        """The state at each step; see :class:`swarm_ui.Judge`."""
        found = await self._replays.states(episode)
        return [Moment(r.trace.run, s) for r, s in zip(episode.steps, found, strict=True)]

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """The outcome after each action; ``None``: a fault ended the continuation."""
        assert isinstance(state, Moment)
        screen = msgspec.json.encode(msgspec.structs.replace(observation, png=None))
        tasks = []
        for action in actions:
            place = (state.run, screen, action.key)
            if place not in self._known:
                self._known[place] = asyncio.ensure_future(self._end(action, state))
            tasks.append(self._known[place])
        return list(await asyncio.gather(*tasks))

    async def _end(self, action: Action, state: Moment) -> float | None:
        environment = await made_by(self._make)
        try:
            inmost(environment).restore(state.snapshot)
            step: Step = await environment.step(action)
            if step.fault is not None:
                return None
            if step.ended:
                return float(step.reward >= SOLVED)
            episode = await rollout(
                _Resumed(environment, step.observation), self._policy,
                task=state.run.rsplit("/", 2)[0], seed=derive(0, state.run, 0),
            )  # fmt: skip
            self.calls += sum(len(record.trace.calls) for record in episode.steps)
            return None if episode.success is None else float(episode.success)
        except EnvironmentFault:
            return None
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
