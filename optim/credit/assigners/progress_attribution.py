"""Contributions of steps to the outcome, by a learned estimator, after SPA-RL (2505.20732)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.batch import BatchCredit, proposals
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Episode, StepRecord

Floats = NDArray[np.float64]
_Features = tuple[str, ...]


class ProgressAttribution(BatchCredit):
    """The estimated contribution of an action to the outcome, after SPA-RL (arXiv 2505.20732).

    An estimator gives each step a contribution, and is fitted so that the contributions of the
    executed actions of an episode add up to its outcome. The advantage of a message is the
    contribution of its action minus the mean of all executed ones, in standard deviations. Every
    proposal has features, so proposals that were not executed get one too. The credit for
    preference pairs is the advantage ``a``, mapped by ``a / (1 + |a|)``.

    What differs from the paper: its estimator is a network on the hidden states of a language
    model, trained on many trajectories. Here it is a ridge regression on simple features of goal,
    screen and action, fitted to the batch that it judges. There the contributions are rewards, and
    PPO estimates advantages with a value network; here the baseline is the mean of the batch. The
    grounding term of the paper, whether an action can be executed, is left out, because the
    included agent proposes only such actions.
    """

    gives_advantages = True
    name = "progress attribution (SPA-RL)"

    def __init__(self, *, ridge: float = 1.0) -> None:
        """``ridge``: weight of the penalty on squared coefficients; above 0."""
        if ridge <= 0.0:
            raise ConfigError(f"ProgressAttribution: ridge must be above 0, got {ridge}")
        self._ridge = ridge

    def _assess(self, episodes: Sequence[Episode]) -> list[list[Mapping[str, float]]]:
        seen = [list(_seen_before(episode)) for episode in episodes]
        executed = [
            [
                step_features(record.trace.observation, record.executed, again)
                for record, again in zip(episode.steps, before, strict=True)
            ]
            for episode, before in zip(episodes, seen, strict=True)
        ]
        outcomes = [float(bool(episode.success)) for episode in episodes]
        weights = fitted(executed, outcomes, self._ridge)
        known = [_sum(weights, features) for steps in executed for features in steps]
        mean = math.fsum(known) / max(1, len(known))
        spread = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / max(1, len(known)))

        def credit(record: StepRecord, again: bool) -> dict[str, float]:
            values = {}
            actions = {m.id: m.action for m in record.trace.messages}
            for id in proposals(record):
                features = step_features(record.trace.observation, actions[id], again)
                gap = _sum(weights, features) - mean
                values[id] = gap / spread if spread > 1e-9 else 0.0
            return values

        return [
            [credit(record, again) for record, again in zip(episode.steps, before, strict=True)]
            for episode, before in zip(episodes, seen, strict=True)
        ]


def fitted(
    steps: Sequence[Sequence[_Features]], outcomes: Sequence[float], ridge: float
) -> dict[str, float]:
    """Coefficients with which the sums over the steps of an episode are close to its outcome.

    Args:
        steps: features of each step of each episode.
        outcomes: one for each episode.
        ridge: penalty on the squared coefficients.
    """
    counts = [Counter(name for features in episode for name in features) for episode in steps]
    names = sorted(set().union(*counts)) if counts else []
    place = {name: k for k, name in enumerate(names)}
    rows: Floats = np.zeros((len(counts), len(names)))
    for row, counted in zip(rows, counts, strict=True):
        for name, count in counted.items():
            row[place[name]] = count
    # In the dual form the system has the size of the batch, not of the features.
    gram = rows @ rows.T + ridge * np.eye(len(rows))
    found: Floats = rows.T @ np.linalg.solve(gram, np.asarray(outcomes, float))
    return {name: float(found[k]) for name, k in place.items()}


def step_features(observation: Observation, action: Action | None, again: bool) -> _Features:
    """Features of an action on a screen. ``again``: whether the screen occurred before."""
    kind = "none" if action is None else action.action_type
    found = [f"type {kind}", f"app {observation.app} {kind}", f"again {again} {kind}"]
    if action is None:
        return tuple(found)
    goal = _words(observation.goal)
    element = observation.element(action.index) if action.index is not None else None
    if element is not None:
        label = _words(element.label)
        found += [f"role {element.role} {kind}", f"label {element.label} {kind}"]
        found.append(f"in goal {_share(label, goal)} {kind}")
    if action.text is not None:
        found.append(f"text in goal {_share(_words(action.text), goal)} {kind}")
    return tuple(found)


def _seen_before(episode: Episode) -> Iterator[bool]:
    seen: set[bytes] = set()
    for record in episode.steps:
        key = screen_key(record.trace.observation)
        yield key in seen
        seen.add(key)


def _share(words: frozenset[str], goal: frozenset[str]) -> str:
    common = len(words & goal)
    return "none" if not common else "all" if common == len(words) else "some"


def _sum(weights: Mapping[str, float], features: _Features) -> float:
    return math.fsum(weights.get(name, 0.0) for name in features)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
