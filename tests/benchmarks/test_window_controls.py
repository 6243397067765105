"""Controls of the studies of windows: one agent that scrolls, and muted or shuffled messages."""

from __future__ import annotations

import asyncio

import pytest
from window_world import NAMES, PASS, Page, SeesOrPasses, long_screen, tap

from benchmarks.support.delivery import RecordedMessages, muted, shuffled
from benchmarks.support.scroller import SlidingWindowPolicy
from swarm_ui import CollabGraph, ConfigError, GraphPolicy, Request
from swarm_ui.graph.shapes import debate
from swarm_ui.nodes import ScriptedModel
from swarm_ui.rollout import rollout


def test_a_scroller_comes_to_the_window_that_matters_one_step_for_each() -> None:
    page = Page(10)
    policy = SlidingWindowPolicy(SeesOrPasses(13), parts=4)
    episode = asyncio.run(rollout(page, policy, task="press", seed=0))  # type: ignore[arg-type]
    assert episode.success and len(episode.steps) == 4
    assert [a.action_type for a in page.done] == ["wait"] * 3 + ["click"]
    seen = [step.trace.calls[0].order for step in episode.steps]
    assert [order[0] for order in seen if order] == [0, 4, 8, 12]


def test_a_scroller_with_notes_receives_its_own_last_messages_of_this_screen() -> None:
    model = SeesOrPasses(13)
    policy = SlidingWindowPolicy(model, parts=4, notes=2, adapter=[None, "a", "b", "c"])
    episode = asyncio.run(rollout(Page(10), policy, task="press", seed=0))  # type: ignore[arg-type]
    assert episode.success and len(episode.steps) == 4
    heard = [r.decision.heard for r in model.requests if r.decision is not None]
    assert [len(each) for each in heard] == [0, 1, 2, 2]
    assert all(h.content == PASS and h.sender.startswith("note_") for each in heard for h in each)
    assert [r.adapter for r in model.requests] == [None, "a", "b", "c"]
    last = episode.steps[-1].trace
    assert last.decision(next(c for c in last.calls if c.node == "agent_0")).heard == heard[-1]
    with pytest.raises(ConfigError, match="an adapter for each of 4 windows"):
        SlidingWindowPolicy(model, parts=4, adapter=["a"])


# -- delivery ---------------------------------------------------------------------------------


def test_shuffled_messages_are_those_of_other_agents_and_muted_teams_receive_none() -> None:
    def say(request: Request) -> str:
        assert request.decision is not None
        element = request.decision.observation.elements[0]
        return tap(0, element.text).json()

    graph = CollabGraph.collaborative(
        4, 1, model=ScriptedModel(say), edges=debate(NAMES), views="window"
    )
    played = asyncio.run(
        rollout(Page(3), GraphPolicy(graph), task="press", seed=0)  # type: ignore[arg-type]
    )
    messages = RecordedMessages.of([played])
    model = ScriptedModel(say)
    team = CollabGraph.collaborative(4, 1, model=model, edges=debate(NAMES), views="window")
    other = shuffled(team, messages)
    again = [other.run_sync(long_screen(16), seed=0, run_id="r") for _ in range(2)]
    assert again[0].matrix() == again[1].matrix()
    starts = dict(zip(NAMES, ("button 0", "button 4", "button 8", "button 12"), strict=True))
    received = [h for r in model.requests if r.decision for h in r.decision.heard]
    assert len(received) == 2 * 6
    for heard in received:
        assert heard.action is not None and heard.action.target != starts[heard.sender]
        assert heard.action.target in starts.values()
    model.requests.clear()
    muted(team).run_sync(long_screen(16))
    assert all(r.decision is not None and not r.decision.heard for r in model.requests)
    with pytest.raises(ConfigError, match="hold messages of 1 agents"):
        RecordedMessages.of([
            asyncio.run(rollout(
                Page(3), SlidingWindowPolicy(SeesOrPasses(13)),  # type: ignore[arg-type]
                task="press", seed=0,
            ))
        ])  # fmt: skip
