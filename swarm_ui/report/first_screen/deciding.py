"""Chooses the decision of a team that the first screen shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from swarm_ui.report.contents import EpisodeSet
from swarm_ui.trace.records import Episode, StepRecord, Trace
from swarm_ui.viz.trace_picture import MOST_CALLS

_MOST_READ = 200
"""Maximum number of episodes that are examined."""
_DIVIDED = 0.4
"""The preferred share of dissenting proposals in the shown decision."""


class Decision(NamedTuple):
    """A step of an episode."""

    episode: int
    """Number of the episode in the viewer, from 0."""
    step: int
    """Number of the step, from 0."""
    task: str
    trace: Trace


def team_decision(sets: Iterable[EpisodeSet]) -> Decision | None:
    """The decision that best illustrates the team's vote; ``None``: no team of agents decided.

    It is chosen from the first 200 episodes. Decisions that can be drawn call by call are
    preferred, then those of solved episodes, those in which agents received each other's messages,
    and those in which two fifths of the proposals were not the most frequent one. Earlier ones are
    preferred among equals.
    """
    best, value = None, (False, False, False, -2.0)
    episodes = (episode for part in sets for episode in part.episodes)
    for number, episode in enumerate(islice(episodes, _MOST_READ)):
        for k, step in enumerate(episode.steps):
            found = _value(episode, step)
            if found is not None and found > value:
                best, value = Decision(number, k, episode.task, step.trace), found
    return best


def _value(episode: Episode, step: StepRecord) -> tuple[bool, bool, bool, float] | None:
    trace = step.trace
    if len(trace.agents) < 2 or trace.action is None:
        return None
    agents = set(trace.agents)
    said = [m for m in trace.messages if m.sender in agents and m.action is not None]
    if len({message.sender for message in said}) < 2:
        return None
    sender = {message.id: message.sender for message in trace.messages}
    heard = any(
        sender.get(id, call.node) != call.node
        for call in trace.calls
        if call.node in agents
        for id in call.heard
    )
    counts = Counter(message.action.key for message in said if message.action is not None)
    disagreed = 1.0 - counts.most_common(1)[0][1] / len(said)
    near = -round(abs(disagreed - _DIVIDED), 3)
    return len(trace.calls) <= MOST_CALLS, episode.success is True, heard, near
