"""Credit from comparing episodes: GiGPO, Dr. MAS, MALT and SPA-RL.

All four compare several attempts at the same start, so batches should hold repeated starts. They
need no calls. Where a paper defines an advantage ``a``, the policy gradient learns from it as it
is, and preference pairs get the bounded form ``a / (1 + |a|)``; 0 is neither right nor wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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

    def __init__(self, *, discount: float = 0.95, weight: float = 1.0) -> None:
        """
        Args:
            discount: factor on the outcome for each step that is left, in (0, 1].
            weight: weight of the second term; at least 0.
        """
        if not 0.0 < discount <= 1.0 or weight < 0.0:
            raise ConfigError(
                "GiGPO: expected discount in (0, 1] and weight of 0 or more, got "
                f"{discount} and {weight}"
            )
        self._discount, self._weight = discount, weight

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        played = [e for e in episodes if e.success is not None]
        outcomes, returns = Groups(), Groups()
        for episode in played:
            outcomes.add(start_of(episode), _outcome(episode))
            for step, place in enumerate(_places(episode)):
                returns.add(place, self._return(episode, step))
        done: dict[tuple[object, ActionKey], list[float]] = {}
        for episode in played:
            for step, (record, place) in enumerate(
                zip(episode.steps, _places(episode), strict=True)
            ):
                if record.executed is not None:
                    own = returns.standard(place, self._return(episode, step))
                    done.setdefault((place, record.executed.key), []).append(own)

        def values(episode: Episode) -> list[dict[str, float]]:
            whole, steps = outcomes.standard(start_of(episode), _outcome(episode)), []
            for step, place in enumerate(_places(episode)):
                executed, found = episode.steps[step].executed, {}
                for id, action in _actions(episode.steps[step]).items():
                    if executed is not None and action.key == executed.key:
                        own = returns.standard(place, self._return(episode, step))
                        found[id] = whole + self._weight * own
                    elif (place, action.key) in done:
                        found[id] = self._weight * fmean(done[place, action.key])
                steps.append(found)
            return steps

        return _advantages(self.name, episodes, values)

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

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""

        def senders(record: StepRecord) -> dict[str, str]:
            ids = {m.id for m in proposals(record.trace)} | set(unreadable(record.trace))
            return {m.id: m.sender for m in record.trace.messages if m.id in ids}

        groups = Groups()
        for episode in episodes:
            for record in episode.steps if episode.success is not None else ():
                for agent in senders(record).values():
                    groups.add((start_of(episode), agent), _outcome(episode))

        def values(episode: Episode) -> list[dict[str, float]]:
            start, outcome = start_of(episode), _outcome(episode)
            return [
                {id: groups.standard((start, a), outcome) for id, a in senders(record).items()}
                for record in episode.steps
            ]

        return _advantages(self.name, episodes, values)


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

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        ends: dict[object, list[float]] = {}
        for episode in episodes:
            done = _executed(episode)
            for step in range(len(done) if episode.success is not None else 0):
                ends.setdefault((start_of(episode), done[: step + 1]), []).append(_outcome(episode))

        def values(episode: Episode) -> list[dict[str, float]]:
            start, done, steps = start_of(episode), _executed(episode), []
            for step, record in enumerate(episode.steps):
                nodes = {id: (start, (*done[:step], a.key)) for id, a in _actions(record).items()}
                steps.append({id: 2 * fmean(ends[n]) - 1 for id, n in nodes.items() if n in ends})
            return steps

        return [Credit.of(e, values(e), source=self.name, signed=True) for e in episodes]


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

    def __init__(self, *, ridge: float = 1.0) -> None:
        """``ridge``: weight of the penalty on squared coefficients; above 0."""
        if ridge <= 0.0:
            raise ConfigError(f"ProgressAttribution: ridge must be above 0, got {ridge}")
        self._ridge = ridge

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        played = [e for e in episodes if e.success is not None]
        executed = [
            [step_features(r.trace.observation, r.executed, again) for r, again in _repeats(e)]
            for e in played
        ]
        weights = fitted(executed, list(map(_outcome, played)), self._ridge)

        def worth(features: Sequence[str]) -> float:
            return math.fsum(weights.get(name, 0.0) for name in features)

        known = [worth(features) for steps in executed for features in steps]
        mean, spread = (fmean(known), pstdev(known)) if known else (0.0, 0.0)

        def value(record: StepRecord, action: Action, again: bool) -> float:
            found = worth(step_features(record.trace.observation, action, again))
            return (found - mean) / spread if spread > 1e-9 else 0.0

        def values(episode: Episode) -> list[dict[str, float]]:
            return [
                {id: value(record, action, again) for id, action in _actions(record).items()}
                for record, again in _repeats(episode)
            ]

        return _advantages(self.name, episodes, values)


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


def _advantages(
    name: str, episodes: Sequence[Episode], values: Callable[[Episode], list[dict[str, float]]]
) -> list[Credit]:
    """Credit from the advantages of the episodes that no fault masked."""

    def credit(episode: Episode) -> Credit:
        if episode.success is None:
            return Credit.unscored(episode, name, f"masked: {episode.fault}")
        found = values(episode)
        bounded: list[Mapping[str, float | None]] = [
            {id: v / (1.0 + abs(v)) for id, v in step.items()} for step in found
        ]
        return Credit.of(episode, bounded, source=name, signed=True, advantages=found)

    return [credit(episode) for episode in episodes]


def _outcome(episode: Episode) -> float:
    return float(bool(episode.success))


def _actions(record: StepRecord) -> dict[str, Action]:
    """Message id -> proposed action."""
    return {m.id: m.action for m in proposals(record.trace) if m.action is not None}


def _places(episode: Episode) -> list[tuple[Start, bytes]]:
    """The start of the episode and the screen of each step."""
    start = start_of(episode)
    return [(start, screen_key(record.trace.observation)) for record in episode.steps]


def _executed(episode: Episode) -> tuple[ActionKey | None, ...]:
    return tuple(None if r.executed is None else r.executed.key for r in episode.steps)


def _repeats(episode: Episode) -> list[tuple[StepRecord, bool]]:
    """Each step, and whether its screen occurred before in the episode."""
    places = _places(episode)
    return [(r, places[k] in places[:k]) for k, r in enumerate(episode.steps)]


def _share(words: frozenset[str], goal: frozenset[str]) -> str:
    common = len(words & goal)
    return "none" if not common else "all" if common == len(words) else "some"


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
