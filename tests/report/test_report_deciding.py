"""Which decision of a team the first screen shows."""

from __future__ import annotations

import random

import msgspec
from report_samples import AGENTS, episode, trace

from swarm_ui.report import EpisodeSet
from swarm_ui.report.first_screen import team_decision
from swarm_ui.trace.records import Episode, StepRecord, Trace
from tests.support.learning_fakes import with_messages


def played(*traces: Trace, success: bool = True) -> Episode:
    steps = tuple(StepRecord(trace=t) for t in traces)
    return msgspec.structs.replace(episode("x"), steps=steps, success=success)


def of(agree: int) -> Trace:
    """A decision in which ``agree`` of 12 proposals are the same, and the others too."""
    made = trace("x", 0, random.Random(0))
    assert made.action is not None
    against = msgspec.structs.replace(made.action, index=3)
    acts = iter([made.action] * agree + [against] * (len(made.calls) - agree))
    return with_messages(made, lambda m: msgspec.structs.replace(m, action=next(acts)))


def chosen(*episodes: Episode) -> tuple[int, int] | None:
    found = team_decision([EpisodeSet(name="s", episodes=episodes)])
    return None if found is None else (found.episode, found.step)


def test_a_divided_team_is_shown_rather_than_one_that_agrees() -> None:
    assert chosen(played(of(12), of(12)), played(of(12), of(7))) == (1, 1)


def test_a_solved_episode_is_shown_rather_than_a_failed_one() -> None:
    assert chosen(played(of(7), success=False), played(of(12))) == (1, 0)


def test_agents_that_hear_each_other_are_shown_rather_than_independent_ones() -> None:
    silent = of(7)
    calls = tuple(msgspec.structs.replace(call, heard=()) for call in silent.calls)
    assert chosen(played(msgspec.structs.replace(silent, calls=calls)), played(of(12))) == (1, 0)


def test_one_agent_is_no_team() -> None:
    alone = of(12)
    mine = tuple(call for call in alone.calls if call.node == AGENTS[0])
    alone = msgspec.structs.replace(alone, agents=AGENTS[:1], calls=mine)
    assert chosen(played(alone)) is None
    assert chosen() is None
