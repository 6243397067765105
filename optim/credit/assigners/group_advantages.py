"""Advantages over groups of episodes as credit: by screen (GiGPO) and by agent (Dr. MAS).

Both compare several attempts at the same start, so batches must hold repeated starts. A start that
occurs once, or whose attempts all ended alike, gives 0: neither right nor wrong.

The policy gradient learns from the advantage ``a`` itself. Preference pairs need bounded credit,
which is ``a / (1 + |a|)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from swarm_ui.action import ActionKey
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.assigner import proposal_messages
from swarm_ui.optim.credit.assigners.batch import (
    BatchCredit,
    Start,
    by_start,
    proposals,
    start_of,
)
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Episode

_FLOOR = 1e-6
_Anchor = tuple[Start, bytes]


class GiGPO(BatchCredit):
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

    gives_advantages = True
    name = "state-wise advantage (GiGPO)"

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

    def _assess(self, episodes: Sequence[Episode]) -> list[list[Mapping[str, float]]]:
        anchors = [self._anchors(e) for e in episodes]
        returns: dict[_Anchor, list[float]] = {}
        for episode, places in zip(episodes, anchors, strict=True):
            for step, place in enumerate(places):
                returns.setdefault(place, []).append(self._return(episode, step))
        done: dict[tuple[_Anchor, ActionKey], list[float]] = {}
        steps: list[list[float]] = []
        for episode, places in zip(episodes, anchors, strict=True):
            steps.append([])
            for step, (record, place) in enumerate(zip(episode.steps, places, strict=True)):
                advantage = _standard(self._return(episode, step), returns[place])
                steps[-1].append(advantage)
                if record.executed is not None:
                    done.setdefault((place, record.executed.key), []).append(advantage)
        whole = _outcome_advantages(episodes)
        found: list[list[Mapping[str, float]]] = []
        for number, episode in enumerate(episodes):
            found.append([])
            for step, record in enumerate(episode.steps):
                place, executed = anchors[number][step], record.executed
                values = {}
                for id, action in proposals(record).items():
                    if executed is not None and action == executed.key:
                        total = whole[number] + self._weight * steps[number][step]
                        values[id] = total
                    elif (place, action) in done:
                        values[id] = self._weight * fmean(done[place, action])
                found[-1].append(values)
        return found

    def _anchors(self, episode: Episode) -> list[_Anchor]:
        start = start_of(episode)
        return [(start, screen_key(record.trace.observation)) for record in episode.steps]

    def _return(self, episode: Episode, step: int) -> float:
        left = len(episode.steps) - 1 - step
        return float(bool(episode.success)) * self._discount**left


class DrMAS(BatchCredit):
    """The outcome relative to each agent's own mean, after Dr. MAS (arXiv 2602.08847).

    For each start and agent, the outcome of an episode counts once for each message of the agent.
    The credit of a message is the outcome minus the mean of this group, divided by its standard
    deviation. All messages of an agent in one episode get the same credit.

    If all agents speak at every step and share the outcome, as in most teams here, the groups of
    all agents are equal. The advantage is then that of GRPO with episodes weighted by their length.
    """

    gives_advantages = True
    name = "agent-wise advantage (Dr. MAS)"

    def _assess(self, episodes: Sequence[Episode]) -> list[list[Mapping[str, float]]]:
        said = [
            [
                {id: record.trace.message(id).sender for id in proposal_messages(record.trace)}
                for record in episode.steps
            ]
            for episode in episodes
        ]
        starts = [start_of(episode) for episode in episodes]
        groups: dict[tuple[Start, str], list[float]] = {}
        for episode, start, steps in zip(episodes, starts, said, strict=True):
            for senders in steps:
                for agent in senders.values():
                    groups.setdefault((start, agent), []).append(float(bool(episode.success)))
        return [
            [
                {
                    id: _standard(float(bool(episode.success)), groups[start, agent])
                    for id, agent in senders.items()
                }
                for senders in steps
            ]
            for episode, start, steps in zip(episodes, starts, said, strict=True)
        ]


def _outcome_advantages(episodes: Sequence[Episode]) -> list[float]:
    """The outcome of each episode relative to the attempts at its start."""
    found = [0.0] * len(episodes)
    for numbers in by_start(episodes).values():
        outcomes = [float(bool(episodes[k].success)) for k in numbers]
        for k, outcome in zip(numbers, outcomes, strict=True):
            found[k] = _standard(outcome, outcomes)
    return found


def _standard(value: float, group: Sequence[float]) -> float:
    """The distance from the mean of a group in standard deviations; 0 in a group of equals."""
    if math.isclose(min(group), max(group)):
        return 0.0
    return (value - fmean(group)) / (pstdev(group) + _FLOOR)
