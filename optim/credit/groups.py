"""Credit from comparing episodes: GiGPO, Dr. MAS, MALT and SPA-RL.

All four compare several attempts at the same start, so batches should hold repeated starts. They
need no calls. Where a paper defines an advantage ``a``, the policy gradient learns from it as it
is, and preference pairs get the bounded form ``a / (1 + |a|)``; 0 is neither right nor wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import fmean, pstdev
from typing import Any, NamedTuple

import numpy as np

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.critic import proposed
from swarm_ui.optim.preferences import Groups, screen_key
from swarm_ui.trace.records import Episode, StepRecord


class _Step(NamedTuple):
    """A step of an episode, with what the four compare: the task and first screen of the episode,
    these with the screen of the step, whether the episode showed it before, the actions executed up
    to and with this step, the number of steps after it, and the outcome."""

    record: StepRecord
    start: tuple[str, bytes]
    place: tuple[object, bytes]
    again: bool
    done: tuple[ActionKey | None, ...]
    left: int
    outcome: float


Values = Callable[[_Step], dict[str, float]]
"""The value of each message of a step, by its id."""


def _steps(episode: Episode) -> list[_Step]:
    if episode.success is None:
        return []
    screens = [screen_key(record.trace.observation) for record in episode.steps]
    done = tuple(None if r.executed is None else r.executed.key for r in episode.steps)
    return [
        _Step(
            record, start := (episode.task, screens[0]), (start, screen), screen in screens[:k],
            done[: k + 1], len(done) - 1 - k, float(episode.success),
        )
        for k, (record, screen) in enumerate(zip(episode.steps, screens, strict=True))
    ]  # fmt: skip


class _Compared:
    name: str
    _defines_advantages = True

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        batch, found = list(map(_steps, episodes)), list[Credit]()
        values_of = self._values(batch)
        for episode, steps in zip(episodes, batch, strict=True):
            values, advantages = list(map(values_of, steps)), None
            if self._defines_advantages:
                advantages = values
                values = [{k: v / (1.0 + abs(v)) for k, v in each.items()} for each in advantages]
            made = Credit.of(episode, values, source=self.name, signed=True, advantages=advantages)
            found.append(made)
        return found

    def _values(self, batch: Sequence[Sequence[_Step]]) -> Values:
        raise NotImplementedError


class GiGPO(_Compared):
    """Advantages on equal screens and of whole episodes, after GiGPO (arXiv 2505.10978).

    The advantage of a step is the sum of two terms, in standard deviations of their groups: the
    outcome compared with the other attempts at the same start, and the discounted outcome compared
    with all steps of these attempts on the same screen.

    What differs from the paper: there one agent acts, here a team proposes. The messages that
    proposed the executed action get the advantage of the step. Another proposal gets the mean
    second term of the steps at which some attempt executed it on this screen, or is unscored.
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

    def _values(self, batch: Sequence[Sequence[_Step]]) -> Values:
        outcomes, returns = Groups(), Groups()
        for steps in filter(None, batch):
            outcomes[steps[0].start].append(steps[0].outcome)
        for step in chain(*batch):
            returns[step.place].append(step.outcome * self._discount**step.left)

        def second(step: _Step) -> float:
            value = returns.standard(step.place, step.outcome * self._discount**step.left)
            return self._weight * value

        taken = defaultdict[object, list[float]](list)
        for step in chain(*batch):
            taken[step.place, step.done[-1]].append(second(step))

        def values(step: _Step) -> dict[str, float]:
            own = outcomes.standard(step.start, step.outcome) + second(step)
            keys = {id: action.key for id, action in proposed(step.record.trace).items()}
            return {
                id: own if key == step.done[-1] else fmean(taken[step.place, key])
                for id, key in keys.items()
                if (step.place, key) in taken
            }

        return values


class DrMAS(_Compared):
    """The outcome relative to each agent's own mean, after Dr. MAS (arXiv 2602.08847).

    For each start and agent, the outcome of an episode counts once for each message of the agent.
    All messages of an agent in one episode get the same credit. If all agents speak at every step,
    as in most teams here, this is GRPO with episodes weighted by their length.
    """

    name = "agent-wise advantage (Dr. MAS)"

    def _values(self, batch: Sequence[Sequence[_Step]]) -> Values:
        def senders(step: _Step) -> dict[str, str]:
            trace = step.record.trace
            ids = {m.id for m in proposals(trace)} | set(unreadable(trace))
            return {m.id: m.sender for m in trace.messages if m.id in ids}

        groups = Groups()
        for step in chain(*batch):
            for agent in senders(step).values():
                groups[step.start, agent].append(step.outcome)
        return lambda step: {
            id: groups.standard((step.start, agent), step.outcome)
            for id, agent in senders(step).items()
        }


class MALT(_Compared):
    """The value of the tree node that an action leads to, after MALT (arXiv 2412.01928).

    All attempts at one start form a tree, whose nodes are the sequences of executed actions. The
    value ``v`` of a node is the success rate of the attempts through it. A message gets ``2 v - 1``
    of the node that its action leads to; it is unscored if no attempt took it.

    What differs from the paper: MALT samples a fixed number of outputs at every agent of a chain
    and plays all combinations; here the tree branches where repeated attempts differ, without
    further calls. MALT counts a value of one half as wrong; here it is neither. MALT defines no
    advantage: the policy gradient compares the values of a group. If each start is played only
    once, the credit of the executed actions is the outcome.
    """

    name = "search tree values (MALT)"
    _defines_advantages = False

    def _values(self, batch: Sequence[Sequence[_Step]]) -> Values:
        ends = defaultdict[object, list[float]](list)
        for step in chain(*batch):
            ends[step.start, *step.done].append(step.outcome)

        def values(step: _Step) -> dict[str, float]:
            before, actions = (step.start, *step.done[:-1]), proposed(step.record.trace)
            nodes = {id: (*before, action.key) for id, action in actions.items()}
            return {id: 2 * fmean(ends[n]) - 1 for id, n in nodes.items() if n in ends}

        return values


class ProgressAttribution(_Compared):
    """The estimated contribution of an action to the outcome, after SPA-RL (arXiv 2505.20732).

    An estimator is fitted so that the contributions of the executed actions of an episode add up to
    its outcome. The advantage of a message is the contribution of its action, executed or not,
    minus the mean of all executed ones, in standard deviations.

    What differs from the paper: its estimator is a network on the hidden states of a language
    model, trained on many trajectories; here it is a ridge regression on simple features of goal,
    screen and action, fitted to the batch that it judges. There PPO estimates advantages with a
    value network; here the baseline is the mean of the batch. The grounding term, whether an action
    can be executed, is left out.
    """

    name = "progress attribution (SPA-RL)"

    def _values(self, batch: Sequence[Sequence[_Step]]) -> Values:
        played = [steps for steps in batch if steps]
        executed = [[_features(s, s.record.executed) for s in steps] for steps in played]
        weights = fitted(executed, [steps[0].outcome for steps in played])

        def worth(features: Sequence[str]) -> float:
            return math.fsum(weights.get(name, 0.0) for name in features)

        known = list(map(worth, chain(*executed)))
        mean, spread = (fmean(known), pstdev(known)) if known else (0.0, 0.0)
        return lambda step: {
            id: (worth(_features(step, action)) - mean) / spread if spread > 1e-9 else 0.0
            for id, action in proposed(step.record.trace).items()
        }


def fitted(
    steps: Sequence[Sequence[Sequence[str]]], outcomes: Sequence[float], ridge: float = 1.0
) -> dict[str, float]:
    """Coefficients with which the sums over the steps of an episode are close to its outcome, from
    the features of each step of each episode. ``ridge``: penalty on their squares."""
    counts = [Counter(chain(*episode)) for episode in steps]
    names = sorted(set(chain(*counts)))
    rows: Any = np.array([[c[name] for name in names] for c in counts], float)
    if not names:
        return {}
    # In the dual form the system has the size of the batch, not of the features.
    gram = rows @ rows.T + ridge * np.eye(len(rows))
    found = rows.T @ np.linalg.solve(gram, np.asarray(outcomes, float))
    return dict(zip(names, map(float, found), strict=True))


def _features(step: _Step, action: Action | None) -> tuple[str, ...]:
    screen, kind = step.record.trace.observation, "none" if action is None else action.action_type
    found = [f"type {kind}", f"app {screen.app} {kind}", f"again {step.again} {kind}"]
    if action is None:
        return tuple(found)
    goal = _words(screen.goal)

    def named(text: str) -> str:
        """How many of its words the goal has."""
        words = _words(text)
        common = len(words & goal)
        return "none" if not common else "all" if common == len(words) else "some"

    element = screen.element(action.index) if action.index is not None else None
    if element is not None:
        found += [f"role {element.role} {kind}", f"label {element.label} {kind}"]
        found.append(f"in goal {named(element.label)} {kind}")
    if action.text is not None:
        found.append(f"text in goal {named(action.text)} {kind}")
    return tuple(found)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
