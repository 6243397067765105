"""Collects judged replies.

If an environment can grade actions (:func:`collect`), a policy plays, and the proposals of all
agents, the solver's action and an adversary's actions are graded during play. Otherwise
(:func:`collect_outcomes`) executed actions of finished episodes get the outcome as their label.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.engine.scheduler import together
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision, Request, ScoringModel
from swarm_ui.node import derive
from swarm_ui.optim.adversary import Adversary
from swarm_ui.optim.credit.learned.judged import (
    JudgedEpisode,
    JudgedReply,
    JudgedScreen,
    Kind,
    Labels,
)
from swarm_ui.optim.stage1.corpus.walk import random_click
from swarm_ui.rollout import Intervention, Job, LocalWorker, MakeEnvironment, Policy, Rollouts
from swarm_ui.trace.records import Episode, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectConfig:
    """Settings of the episodes and of the judged replies."""

    guide: float = 0.0
    """Probability that the solver's action is executed instead of the decision. 0 for a test, so
    that the screens are those that the agents get to."""
    stray: float = 0.0
    """Probability that a random action is executed instead."""
    adversaries: int = 2
    """Draws of the adversary for each screen, where a solver knows a right action."""
    concurrency: int = 32
    """Episodes at the same time."""
    max_steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("guide", "stray"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"collect: {name} must be in [0, 1], got {getattr(self, name)}")
        if self.adversaries < 0 or self.concurrency < 1:
            raise ConfigError(
                f"collect: expected adversaries >= 0 and concurrency >= 1, got {self.adversaries} "
                f"and {self.concurrency}"
            )


async def collect(
    make_environment: MakeEnvironment,
    policy: Policy,
    jobs: Sequence[Job],
    *,
    split: str,
    config: CollectConfig | None = None,
    adversary: Adversary | None = None,
    scorer: ScoringModel | None = None,
) -> AsyncIterator[JudgedEpisode]:
    """Play jobs; yields the judged episodes in the order they end, without those with a fault.

    Args:
        make_environment: makes environments with ``expert()`` and ``grade()``.
        policy: the agents whose replies are judged. Replies of the first agent are marked ``own``.
        jobs: (task, seed) pairs of one split.
        split: the name of the split, for the records.
        config: settings.
        adversary: writes wrong replies.
        scorer: gives the log-probability of each reply.

    Raises:
        ConfigError: an environment cannot grade actions.
    """
    settings = config or CollectConfig()
    judge = _Judge(settings, adversary, scorer)
    size = max(1, min(settings.concurrency, len(jobs)))
    async with Rollouts([LocalWorker(make_environment, slots=size)]) as rollouts:
        stream = rollouts.stream(policy, jobs, intervention=judge, max_steps=settings.max_steps)
        async for _, episode in stream:
            found = judge.finished(episode, split)
            if found is not None:
                yield found


async def collect_outcomes(
    make_environment: MakeEnvironment,
    policy: Policy,
    jobs: Sequence[Job],
    *,
    split: str,
    concurrency: int = 8,
) -> AsyncIterator[JudgedEpisode]:
    """Play jobs in an environment that cannot grade actions; see :func:`judged_by_outcome`.

    Args:
        make_environment: makes environments of any kind.
        policy: the agents whose replies are judged, without guidance.
        jobs: (task, seed) pairs of one split.
        split: the name of the split, for the records.
        concurrency: episodes at the same time.
    """
    size = max(1, min(concurrency, len(jobs)))
    async with Rollouts([LocalWorker(make_environment, slots=size)]) as rollouts:
        async for _, episode in rollouts.stream(policy, jobs):
            found = judged_by_outcome(episode, split)
            if found is not None:
                yield found


def judged_by_outcome(episode: Episode, split: str) -> JudgedEpisode | None:
    """A recorded episode with the outcome as the label of each executed reply.

    Proposals that were not executed have no label and are left out. ``None``: a fault ended the
    episode, or no agent proposed what was executed.

    Args:
        episode: of a policy without guidance, so that the agents' own replies were executed.
        split: the name of its split, for the record.
    """
    if episode.success is None:
        return None
    screens = []
    for index, record in enumerate(episode.steps):
        trace, done = record.trace, record.executed
        found = None if done is None else _proposals(trace).get(done.key)
        if found is not None:
            action, kind = found
            said = next(
                m for m in trace.messages if m.action == action and m.sender in trace.agents
            )
            votes = _votes(trace)
            reply = JudgedReply(
                action=action,
                kind=kind,
                right=episode.success,
                votes=votes[action.key],
                logprob=said.logprob,
                executed=True,
            )
            screens.append(_screen(index, trace, [reply], votes))
    return _episode(episode, split, "outcome", screens) if screens else None


class _Judge:
    """Grades the proposals of each decision before it is executed."""

    def __init__(
        self, config: CollectConfig, adversary: Adversary | None, scorer: ScoringModel | None
    ) -> None:
        self._config, self._adversary, self._scorer = config, adversary, scorer
        self._screens: dict[int, tuple[Trace, JudgedScreen]] = {}
        """Judged screens by the ``id()`` of their trace, because several episodes may play one
        task and seed. The traces are kept too, so that no other trace gets their ``id()``."""

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        """Grade the proposals of a decision, and choose the action to execute; see
        :class:`~swarm_ui.rollout.Intervene`."""
        if not isinstance(environment, Graded):
            raise ConfigError(
                f"collect: {environment.name} has no expert() and grade(); play it and use "
                "judged_by_outcome on its episodes"
            )
        rng = random.Random(derive(self._config.seed, "collect", trace.run))
        best, proposals, votes = environment.expert(), _proposals(trace), _votes(trace)
        proposals.setdefault(best.key, (best, "solver"))
        for action in await self._mistakes(trace, best, rng):
            proposals.setdefault(action.key, (action, "adversary"))
        instead = self._instead(trace, best, rng)
        executed = instead or trace.action
        logprobs = await self._logprobs(trace, [action for action, _ in proposals.values()])
        replies = [
            JudgedReply(
                action=action,
                kind=kind,
                right=environment.grade(action) > 0.5,
                votes=votes[action.key],
                logprob=logprob,
                executed=executed is not None and action.key == executed.key,
            )
            for (action, kind), logprob in zip(proposals.values(), logprobs, strict=True)
        ]
        self._screens[id(trace)] = trace, _screen(index, trace, replies, votes)
        return Intervention(execute=instead)

    def finished(self, episode: Episode, split: str) -> JudgedEpisode | None:
        """The record of an episode, or ``None`` if a fault ended it."""
        kept = [self._screens.pop(id(record.trace), None) for record in episode.steps]
        if episode.success is None:
            return None
        return _episode(episode, split, "solver", [found[1] for found in kept if found is not None])

    async def _mistakes(self, trace: Trace, best: Action, rng: random.Random) -> list[Action]:
        if self._adversary is None:
            return []
        decision = Decision(observation=trace.observation)
        seeds = [rng.getrandbits(31) for _ in range(self._config.adversaries)]
        drawn = [self._adversary.oppose(decision, best, seed=seed) for seed in seeds]
        return [action for action in await together(drawn) if action is not None]

    def _instead(self, trace: Trace, best: Action, rng: random.Random) -> Action | None:
        """An action to execute instead of the decision, or ``None`` to execute the decision."""
        draw = rng.random()
        if draw < self._config.stray:
            return random_click(trace.observation, rng)
        return best if draw < self._config.stray + self._config.guide else None

    async def _logprobs(self, trace: Trace, actions: Sequence[Action]) -> Sequence[float | None]:
        if self._scorer is None or not actions:
            return [None] * len(actions)
        asked = Request(decision=Decision(observation=trace.observation), run=trace.run)
        return await self._scorer.score([asked] * len(actions), [a.json() for a in actions])


def _proposals(trace: Trace) -> dict[ActionKey, tuple[Action, Kind]]:
    """The distinct proposals of the agents; those of the first agent come first."""
    found: dict[ActionKey, tuple[Action, Kind]] = {}
    said = [m for m in trace.messages if m.sender in trace.agents]
    for message in sorted(said, key=lambda m: m.sender != trace.agents[0]):  # own ones first
        kind: Kind = "own" if message.sender == trace.agents[0] else "colleague"
        if message.action is not None:
            found.setdefault(message.action.key, (message.action, kind))
    return found


def _votes(trace: Trace) -> Counter[ActionKey]:
    """Number of agents that proposed each action in the last round."""
    final = [m for m in trace.messages if m.round == trace.rounds - 1 and m.sender in trace.agents]
    return Counter(m.action.key for m in final if m.action is not None)


def _screen(
    index: int, trace: Trace, replies: Sequence[JudgedReply], votes: Counter[ActionKey]
) -> JudgedScreen:
    return JudgedScreen(
        step=index,
        observation=msgspec.structs.replace(trace.observation, png=None),
        replies=tuple(replies),
        voters=votes.total(),
    )


def _episode(
    episode: Episode, split: str, labels: Labels, screens: Sequence[JudgedScreen]
) -> JudgedEpisode:
    return JudgedEpisode(
        environment=episode.environment,
        split=split,
        task=episode.task,
        seed=episode.seed,
        labels=labels,
        success=bool(episode.success),
        screens=tuple(screens),
    )
