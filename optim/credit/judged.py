"""Judged replies, on which a learned critic is trained and tested, and how they are collected.

If an environment can grade actions (:func:`collect`), a policy plays, and the proposals of all
agents, the solver's action and an adversary's actions are graded during play. Otherwise
(:func:`collect_outcomes`) executed actions of finished episodes get the outcome as their label.

A record is one episode: its screens, the replies to each screen, and a label for each reply.
Records are JSON lines. They contain their environment, task, seed and split, so that training data
can be separated from test data.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.engine.scheduler import together
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.files import LineFile, whole_lines, write_atomic
from swarm_ui.model import Decision, Request, ScoringModel
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import Adversary
from swarm_ui.optim.stage1.walk import random_action
from swarm_ui.rollout import Intervention, Job, LocalWorker, MakeEnvironment, Policy, Rollouts
from swarm_ui.trace.records import Episode, Trace

Kind = Literal["own", "colleague", "solver", "adversary"]
"""Source of the proposal: the first agent of the team; another agent, which saw the elements in
another order or sampled; the environment's solver; the adversary. A reply that several proposed
counts for the first of these."""
KINDS: tuple[str, ...] = get_args(Kind)
Labels = Literal["solver", "outcome"]
"""Source of the labels. ``solver``: the environment graded each reply. ``outcome``: the executed
reply of a solved episode counts as right, that of another episode as wrong. The second rule is
often wrong, because a failed episode has right steps too."""
Purpose = Literal["train", "validation", "test"]


class JudgedReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply to a screen."""

    action: Action
    """The action, in the indices of the whole screen."""
    kind: Kind
    right: bool
    votes: int = 0
    """Agents of the team that proposed it in the last round."""
    logprob: float | None = None
    """Log-probability (nats) of the action under one agent with the screen's own order; ``None``:
    not known, or impossible there."""
    executed: bool = False


class JudgedScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision with its judged replies, each a different action."""

    step: int
    observation: Observation
    """The screen with its goal and history, without a picture."""
    replies: tuple[JudgedReply, ...]
    voters: int = 0
    """Agents that proposed something in the last round."""


class JudgedEpisode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The judged screens of one episode."""

    environment: str
    split: str
    """The split of the episode, such as ``train`` or ``new_apps``."""
    task: str
    seed: int
    labels: Labels
    success: bool
    screens: tuple[JudgedScreen, ...]


class JudgedHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a file of judged episodes: what the file is for, and how it was made."""

    judged_version: int = 1
    purpose: Purpose
    """What the episodes are for. Critics are trained only on files for ``train``."""
    settings: dict[str, object]
    """Settings of the collection, as JSON values."""


class JudgedFile:
    """A file of judged episodes that grows, one line an episode."""

    def __init__(self, path: Path, head: JudgedHead) -> None:
        """Open or create it.

        Raises:
            ConfigError: the file was created with another head, or cannot be read or written.
        """
        self._path = path
        self.episodes: list[JudgedEpisode] = []
        """All that the file holds."""
        try:
            if path.exists() and path.stat().st_size:
                found, self.episodes = read_judged(path)
                if found != head:
                    raise ConfigError(
                        f"'{path}' was collected for '{found.purpose}' with {found.settings}; this "
                        f"run is for '{head.purpose}' with {head.settings}. Use the same settings, "
                        "or another file"
                    )
            else:
                write_atomic(path, msgspec.json.encode(head) + b"\n")
            self._file = LineFile(path)
        except OSError as error:
            raise ConfigError(f"cannot write '{path}': {error}") from error

    @property
    def done(self) -> set[tuple[str, int]]:
        """Task and seed of each episode."""
        return {(episode.task, episode.seed) for episode in self.episodes}

    def add(self, episode: JudgedEpisode) -> None:
        """Append an episode. Raises ``ConfigError`` if it cannot be written."""
        try:
            self._file.append(msgspec.json.encode(episode))
        except OSError as error:
            raise ConfigError(
                f"cannot write '{self._path}': {error}. Earlier lines are saved; repeat the "
                "command to continue"
            ) from error
        self.episodes.append(episode)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_judged(
    path: Path, *, purpose: Purpose | None = None
) -> tuple[JudgedHead, list[JudgedEpisode]]:
    """The head and all episodes of a file. An incomplete last line is left out.

    Raises:
        ConfigError: the file does not exist, does not hold judged episodes, or has another purpose.
    """
    try:
        lines = whole_lines(path)
        head = msgspec.json.decode(lines[0] if lines else b"", type=JudgedHead)
        decoder = msgspec.json.Decoder(JudgedEpisode)
        episodes = [decoder.decode(line) for line in lines[1:]]
    except (OSError, msgspec.MsgspecError, UnicodeError, ValueError) as error:
        raise ConfigError(f"'{path}' is not a file of judged episodes: {error}") from error
    if purpose is not None and head.purpose != purpose:
        raise ConfigError(
            f"'{path}' was collected for '{head.purpose}', expected a file for '{purpose}'"
        )
    return head, episodes


def balanced(
    screens: Sequence[JudgedScreen], rng: random.Random, *, most: int = 6
) -> list[JudgedScreen]:
    """Screens with equal total numbers of right and wrong replies, in random order.

    At most ``most`` replies of each screen are kept: half of them right and half wrong, or more of
    one label if there are fewer of the other. Wrong replies of agents are preferred to those of an
    adversary, because a critic is used on replies of agents. Then replies of the more frequent
    label are left out at random until both are equal.
    """
    drawn = [(screen, _some(screen, rng, most)) for screen in screens]
    places = [(k, reply) for k, (_, kept) in enumerate(drawn) for reply in kept]
    right = [(k, id(reply)) for k, reply in places if reply.right]
    wrong = [(k, id(reply)) for k, reply in places if not reply.right]
    more, less = (right, wrong) if len(right) > len(wrong) else (wrong, right)
    left_out = set(rng.sample(more, len(more) - len(less)))
    found = []
    for k, (screen, kept) in enumerate(drawn):
        replies = [reply for reply in kept if (k, id(reply)) not in left_out]
        if replies:
            found.append(msgspec.structs.replace(screen, replies=tuple(replies)))
    rng.shuffle(found)
    return found


def _some(screen: JudgedScreen, rng: random.Random, most: int) -> list[JudgedReply]:
    right = [reply for reply in screen.replies if reply.right]
    wrong = [reply for reply in screen.replies if not reply.right]
    few = min(len(right), max(most // 2, most - len(wrong)))
    rng.shuffle(wrong)
    wrong.sort(key=lambda reply: reply.kind == "adversary")
    kept = [*rng.sample(right, few), *wrong[: most - few]]
    rng.shuffle(kept)
    return kept


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
                c for c in trace.calls if c.message.action == action and c.node in trace.agents
            )
            votes = _votes(trace)
            reply = JudgedReply(
                action=action,
                kind=kind,
                right=episode.success,
                votes=votes[action.key],
                logprob=said.completion.logprob if said.completion else None,
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
            return random_action(trace.observation, rng)
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
