"""Credit from comparing episodes: GiGPO, Dr. MAS, MALT and SPA-RL.

All four compare several attempts at the same start, so batches should hold repeated starts. They
need no calls. Where a paper defines an advantage ``a``, the policy gradient learns from it as it
is, and preference pairs get the bounded form ``a / (1 + |a|)``; 0 is neither right nor wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.critic import Groups, screen_key
from swarm_ui.trace.records import Episode, StepRecord

Start = tuple[str, bytes]
"""Task and first screen: what attempts at one task instance have in common."""
_Values = list[list[dict[str, float]]]
"""For each step of each episode: a value by message id."""


class GiGPO:
    """Advantages on equal screens and of whole episodes, after GiGPO (arXiv 2505.10978).

    The advantage of a step is the sum of two terms. The first compares the outcome with those of
    the other attempts at the same start. The second compares the discounted outcome with those of
    all steps of these attempts on the same screen. Both are divided by the standard deviation of
    their group.

    What differs from the paper: there one agent acts, here a team proposes. The messages that
    proposed the executed action get the advantage of the step. A proposal that was not executed
    gets the mean second term of the steps at which some attempt executed it on this screen, and is
    unscored if there are no such steps.
    """

    name = "state-wise advantage (GiGPO)"
    calls = 0

    def __init__(self, *, discount: float = 0.95, weight: float = 1.0) -> None:
        """
        Args:
            discount: factor on the outcome for each step that is left, in (0, 1].
            weight: weight of the second term; at least 0.
        """
        if not 0.0 < discount <= 1.0:
            raise ConfigError(f"GiGPO: discount must be in (0, 1], got {discount}")
        if weight < 0.0:
            raise ConfigError(f"GiGPO: weight must be 0 or more, got {weight}")
        self._discount, self._weight = discount, weight

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        played = _played(episodes)
        starts = [start_of(episode) for episode in played]
        places = [
            [(start, screen_key(record.trace.observation)) for record in episode.steps]
            for episode, start in zip(played, starts, strict=True)
        ]
        outcomes, returns = Groups(), Groups()
        for episode, start, seen in zip(played, starts, places, strict=True):
            outcomes.add(start, _outcome(episode))
            for step, place in enumerate(seen):
                returns.add(place, self._return(episode, step))
        done: dict[tuple[object, ActionKey], list[float]] = {}
        for episode, seen in zip(played, places, strict=True):
            for step, (record, place) in enumerate(zip(episode.steps, seen, strict=True)):
                if record.executed is not None:
                    own = returns.standard(place, self._return(episode, step))
                    done.setdefault((place, record.executed.key), []).append(own)

        def values(episode: Episode, start: Start, step: int, place: object) -> dict[str, float]:
            executed, found = episode.steps[step].executed, {}
            for id, action in _actions(episode.steps[step]).items():
                if executed is not None and action.key == executed.key:
                    own = returns.standard(place, self._return(episode, step))
                    found[id] = outcomes.standard(start, _outcome(episode)) + self._weight * own
                elif (place, action.key) in done:
                    found[id] = self._weight * fmean(done[place, action.key])
            return found

        return _advantages(
            self.name,
            episodes,
            [
                [values(e, start, step, place) for step, place in enumerate(seen)]
                for e, start, seen in zip(played, starts, places, strict=True)
            ],
        )

    def _return(self, episode: Episode, step: int) -> float:
        return _outcome(episode) * self._discount ** (len(episode.steps) - 1 - step)


class DrMAS:
    """The outcome relative to each agent's own mean, after Dr. MAS (arXiv 2602.08847).

    For each start and agent, the outcome of an episode counts once for each message of the agent.
    The credit of a message is the outcome minus the mean of this group, divided by its standard
    deviation. All messages of an agent in one episode get the same credit.

    If all agents speak at every step and share the outcome, as in most teams here, the groups of
    all agents are equal. The advantage is then that of GRPO with episodes weighted by their length.
    """

    name = "agent-wise advantage (Dr. MAS)"
    calls = 0

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        played = _played(episodes)

        def senders(record: StepRecord) -> dict[str, str]:
            trace = record.trace
            ids = {m.id for m in proposals(trace)} | set(unreadable(trace))
            return {m.id: m.sender for m in trace.messages if m.id in ids}

        starts = [start_of(episode) for episode in played]
        said = [[senders(record) for record in episode.steps] for episode in played]
        groups = Groups()
        for episode, start, steps in zip(played, starts, said, strict=True):
            for agent in (agent for step in steps for agent in step.values()):
                groups.add((start, agent), _outcome(episode))
        found = [
            [
                {id: groups.standard((start, a), _outcome(episode)) for id, a in step.items()}
                for step in steps
            ]
            for episode, start, steps in zip(played, starts, said, strict=True)
        ]
        return _advantages(self.name, episodes, found)


class MALT:
    """The value of the tree node that an action leads to, after MALT (arXiv 2412.01928).

    All attempts at one start form a tree. A node is the sequence of executed actions so far, and
    the leaves are the outcomes. The value of a node is the success rate of the attempts through
    it. A message gets the value of the node that its action leads to, as the signed number
    ``2 v - 1``: an action is right if most attempts that took it after the same actions succeeded.
    It is unscored if no attempt took it.

    What differs from the paper: MALT samples a fixed number of outputs at every agent of a chain
    and plays all combinations. Here the agents of a decision act on one state, and the tree
    branches where repeated attempts differ, so there are no further calls. MALT counts a value of
    one half as wrong; here it is neither. MALT trains on preferences and defines no advantage: the
    policy gradient compares the values of a group. If each start is played only once, the credit
    of the executed actions is the outcome.
    """

    name = "search tree values (MALT)"
    calls = 0

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        ends: dict[object, list[float]] = {}
        for episode in _played(episodes):
            start, done = start_of(episode), _executed(episode)
            for step in range(len(done)):
                ends.setdefault((start, done[: step + 1]), []).append(_outcome(episode))

        def values(episode: Episode) -> Iterator[dict[str, float]]:
            start, done = start_of(episode), _executed(episode)
            for step, record in enumerate(episode.steps):
                nodes = {id: (start, (*done[:step], a.key)) for id, a in _actions(record).items()}
                yield {id: 2 * fmean(ends[n]) - 1 for id, n in nodes.items() if n in ends}

        return [Credit.of(e, list(values(e)), source=self.name, signed=True) for e in episodes]


class ProgressAttribution:
    """The estimated contribution of an action to the outcome, after SPA-RL (arXiv 2505.20732).

    An estimator gives each step a contribution, and is fitted so that the contributions of the
    executed actions of an episode add up to its outcome. The advantage of a message is the
    contribution of its action minus the mean of all executed ones, in standard deviations. Every
    proposal has features, so proposals that were not executed get one too.

    What differs from the paper: its estimator is a network on the hidden states of a language
    model, trained on many trajectories. Here it is a ridge regression on simple features of goal,
    screen and action, fitted to the batch that it judges. There the contributions are rewards, and
    PPO estimates advantages with a value network; here the baseline is the mean of the batch. The
    grounding term of the paper, whether an action can be executed, is left out, because the
    included agent proposes only such actions.
    """

    name = "progress attribution (SPA-RL)"
    calls = 0

    def __init__(self, *, ridge: float = 1.0) -> None:
        """``ridge``: weight of the penalty on squared coefficients; above 0."""
        if ridge <= 0.0:
            raise ConfigError(f"ProgressAttribution: ridge must be above 0, got {ridge}")
        self._ridge = ridge

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        played = _played(episodes)
        seen = [list(_seen_before(episode)) for episode in played]
        executed = [
            [
                step_features(record.trace.observation, record.executed, again)
                for record, again in zip(episode.steps, before, strict=True)
            ]
            for episode, before in zip(played, seen, strict=True)
        ]
        weights = fitted(executed, [_outcome(episode) for episode in played], self._ridge)
        known = [_sum(weights, features) for steps in executed for features in steps]
        mean, spread = (fmean(known), pstdev(known)) if known else (0.0, 0.0)

        def values(record: StepRecord, again: bool) -> dict[str, float]:
            worth = {
                id: _sum(weights, step_features(record.trace.observation, action, again))
                for id, action in _actions(record).items()
            }
            return {
                id: (value - mean) / spread if spread > 1e-9 else 0.0 for id, value in worth.items()
            }

        found = [
            [values(record, again) for record, again in zip(episode.steps, before, strict=True)]
            for episode, before in zip(played, seen, strict=True)
        ]
        return _advantages(self.name, episodes, found)


def fitted(
    steps: Sequence[Sequence[Sequence[str]]], outcomes: Sequence[float], ridge: float
) -> dict[str, float]:
    """Coefficients with which the sums over the steps of an episode are close to its outcome.

    Args:
        steps: features of each step of each episode.
        outcomes: one for each episode.
        ridge: penalty on the squared coefficients.
    """
    counts = [Counter(name for features in episode for name in features) for episode in steps]
    names = sorted(set().union(*counts)) if counts else []
    rows: NDArray[np.float64] = np.array([[c[name] for name in names] for c in counts], float)
    if not names:
        return {}
    # In the dual form the system has the size of the batch, not of the features.
    gram = rows @ rows.T + ridge * np.eye(len(rows))
    found = rows.T @ np.linalg.solve(gram, np.asarray(outcomes, float))
    return dict(zip(names, map(float, found), strict=True))


def step_features(observation: Observation, action: Action | None, again: bool) -> tuple[str, ...]:
    """Features of an action on a screen. ``again``: whether the screen occurred before."""
    kind = "none" if action is None else action.action_type
    found = [f"type {kind}", f"app {observation.app} {kind}", f"again {again} {kind}"]
    if action is None:
        return tuple(found)
    goal = _words(observation.goal)
    element = observation.element(action.index) if action.index is not None else None
    if element is not None:
        found += [f"role {element.role} {kind}", f"label {element.label} {kind}"]
        found.append(f"in goal {_share(_words(element.label), goal)} {kind}")
    if action.text is not None:
        found.append(f"text in goal {_share(_words(action.text), goal)} {kind}")
    return tuple(found)


def start_of(episode: Episode) -> Start:
    """The start of an episode. Equal starts are different attempts at one task instance."""
    first = screen_key(episode.steps[0].trace.observation) if episode.steps else b""
    return episode.task, first


def _advantages(name: str, episodes: Sequence[Episode], found: _Values) -> list[Credit]:
    """Credit from advantages, which are given for the episodes that no fault masked."""
    rest = iter(found)

    def bounded(steps: list[dict[str, float]]) -> list[Mapping[str, float | None]]:
        return [{id: v / (1.0 + abs(v)) for id, v in step.items()} for step in steps]

    return [
        Credit.unscored(e, name, f"masked: {e.fault}")
        if e.success is None
        else Credit.of(e, bounded(values := next(rest)), source=name, signed=True,
                       advantages=values)
        for e in episodes
    ]  # fmt: skip


def _played(episodes: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in episodes if episode.success is not None]


def _outcome(episode: Episode) -> float:
    return float(bool(episode.success))


def _actions(record: StepRecord) -> dict[str, Action]:
    """Message id -> proposed action."""
    return {m.id: m.action for m in proposals(record.trace) if m.action is not None}


def _executed(episode: Episode) -> tuple[ActionKey | None, ...]:
    return tuple(None if r.executed is None else r.executed.key for r in episode.steps)


def _seen_before(episode: Episode) -> Iterator[bool]:
    seen: set[bytes] = set()
    for record in episode.steps:
        key = screen_key(record.trace.observation)
        yield key in seen
        seen.add(key)


def _share(words: frozenset[str], goal: frozenset[str]) -> str:
    common = len(words & goal)
    return "none" if not common else "all" if common == len(words) else "some"


def _sum(weights: Mapping[str, float], features: Sequence[str]) -> float:
    return math.fsum(weights.get(name, 0.0) for name in features)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
