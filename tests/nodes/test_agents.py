"""Agents: their own view of the screen, what they hear, replies that make no sense."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from graph_fakes import SCREEN, FixedModel, HashModel, click
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    CollabGraph,
    Completion,
    Request,
)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_answers_are_mapped_back_from_each_agents_own_view(seed: int) -> None:
    """A model that always points at the label 'button 4' must always hit element 4."""

    class Pointer(HashModel):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            self.requests.extend(requests)
            found = [
                next(e.index for e in r.decision.observation.elements if e.text == "button 4")
                for r in requests
                if r.decision is not None
            ]
            return [Completion(text=click(index), prompt="p") for index in found]

    model = Pointer()
    team = CollabGraph.collaborative(rounds=2, model=model, views="shuffle", seed=seed)
    trace = team.run_sync(SCREEN, seed=seed)
    assert {m.action.index for m in trace.messages if m.action is not None} == {4}
    # What the others propose is heard in the listener's own indices.
    for request in model.requests:
        assert request.decision is not None
        shown = request.decision.observation.elements
        for heard in request.decision.heard:
            assert heard.action is not None and heard.action.index is not None
            assert shown[heard.action.index].text == "button 4"


def test_the_first_agent_keeps_the_screens_order_and_views_last_a_whole_decision() -> None:
    team = CollabGraph.collaborative(rounds=3, model=HashModel(), views="shuffle")
    orders: dict[str, set[tuple[int, ...] | None]] = {}
    for call in team.run_sync(SCREEN, seed=1).calls:
        orders.setdefault(call.node, set()).add(call.order)
    assert orders["agent_0"] == {None}
    assert all(len(orders[f"agent_{k}"]) == 1 for k in range(4))
    assert len({frozenset(orders[f"agent_{k}"]) for k in range(4)}) == 4
    other = team.run_sync(SCREEN, seed=2)
    assert {c.order for c in other.calls if c.node == "agent_1"} != orders["agent_1"]


def test_the_trace_rebuilds_the_exact_context_of_every_call() -> None:
    model = HashModel()
    team = CollabGraph.collaborative(model=model, views="shuffle", adapters=list("abcd"), seed=2)
    trace = team.run_sync(SCREEN, seed=9)
    asked = {request.seed: request for request in model.requests}
    spoken = [call for call in trace.calls if call.node != "vote"]
    assert len(spoken) == 12 == len(asked)
    for call in spoken:
        request = asked[call.seed]
        assert msgspec.json.encode(trace.decision(call)) == msgspec.json.encode(request.decision)
        assert call.adapter == request.adapter == "abcd"[int(call.node[-1])]
        assert call.completion is not None
        assert call.completion.logprob == -0.5 and call.prompt


def test_own_words_are_heard_first_then_predecessors_in_edge_order() -> None:
    edges = [("agent_2", "agent_0"), ("agent_1", "agent_0")]
    team = CollabGraph.collaborative(3, 2, model=HashModel(), edges=edges)
    heard = {call.id: call.heard for call in team.run_sync(SCREEN).calls}
    assert heard["agent_0:0"] == ("agent_2:0", "agent_1:0")
    assert heard["agent_0:1"] == ("agent_0:0", "agent_2:1", "agent_1:1")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I would click it", "no JSON object"),
        ('{"action_type": "fly"}', "unknown action_type"),
        (click(6), "there is no element 6; the screen shows 6"),
    ],
)
def test_a_reply_without_a_valid_action_is_a_value_with_a_reason(reply: str, reason: str) -> None:
    trace = CollabGraph.solo(FixedModel({None: reply})).run_sync(SCREEN)
    message = trace.messages[0]
    assert message.content == reply and message.action is None
    assert message.error is not None and reason in message.error
    assert trace.calls[0].error is None  # nothing failed
