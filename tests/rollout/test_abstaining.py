"""Agents that see a part of the screen: what they see, may say, and how a vote counts it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from graph_fakes import SCREEN
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import (
    Action,
    CollabGraph,
    Element,
    Observation,
    Request,
    Trace,
)
from swarm_ui.action import Abstain
from swarm_ui.agent_view import AgentView, Pane, View
from swarm_ui.graph.shapes import debate
from swarm_ui.model import Decision
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.prompts import decision_chat
from swarm_ui.topology import Edge

PASS = Abstain().json()
NAMES = tuple(f"agent_{k}" for k in range(4))


def long_screen(count: int) -> Observation:
    """A screen of buttons; each quarter is a pane."""
    elements = tuple(
        Element(index=i, role="button", text=f"button {i}", pane=str(4 * i // count))
        for i in range(count)
    )
    return Observation(goal="press the right one", elements=elements)


def tap(index: int, target: str | None = None) -> Action:
    return Action(action_type="click", index=index, target=target)


class SeesOrPasses(ScriptedModel):
    """Proposes the wanted buttons it sees, the first of them; else what it heard; else passes."""

    def __init__(self, *wanted: int) -> None:
        super().__init__(self.say)
        self.wanted = [f"button {k}" for k in wanted]

    def say(self, request: Request) -> str:
        assert request.decision is not None
        for element in request.decision.observation.elements:
            if element.text in self.wanted:
                return tap(element.index, element.text).json()
        heard = [h.action for h in request.decision.heard if h.action is not None]
        return heard[0].json() if heard else PASS


def team(
    model: ScriptedModel,
    edges: Sequence[Edge] = (),
    *,
    views: Sequence[AgentView] | None = None,
    screen: Observation | None = None,
    seed: int = 0,
    rounds: int = 1,
) -> Trace:
    graph = CollabGraph.collaborative(
        4, rounds, model=model, edges=edges, views="pane" if views is None else views
    )
    return graph.run_sync(screen or long_screen(16), seed=seed)


# -- what is seen -----------------------------------------------------------------------------


@given(count=st.integers(1, 30), pane=st.sampled_from("0123"), data=st.data())
def test_the_numbers_of_a_pane_lead_to_every_element_and_back(
    count: int, pane: str, data: st.DataObject
) -> None:
    screen = long_screen(count)
    view = View(screen, Pane(name=pane).order(screen))
    shown = len(view.observation.elements)
    assert view.partial == (shown < count)
    index = data.draw(st.integers(0, count - 1))
    told = view.from_screen_with_hidden(tap(index))
    assert told is not None and told.index is not None
    assert view.to_screen(told) == tap(index)
    if index in view.order:
        assert told == view.from_screen(tap(index))
        assert view.observation.elements[told.index].text == f"button {index}"
    else:
        assert view.from_screen(tap(index)) is None and told.index >= shown
    assert view.to_screen(tap(count)) is None and view.from_screen_with_hidden(tap(count)) is None


# -- what is said -----------------------------------------------------------------------------


def test_a_colleagues_element_can_be_proposed_without_being_seen() -> None:
    trace = team(SeesOrPasses(2), debate(NAMES))
    assert trace.ballot == {tap(2, "button 2").json(): 4.0}
    for call in trace.calls[:4]:
        decision = trace.decision(call)
        assert decision.partial and len(decision.observation.elements) == 4
        assert call.order is not None and len(call.order) == 4
    heard = trace.decision(trace.calls[1]).heard
    assert [h.action for h in heard] == [tap(6, "button 2")]  # after the four that are shown


def test_a_pass_is_heard_and_told_only_to_who_may_pass() -> None:
    model = SeesOrPasses(15)
    trace = team(model, debate(NAMES))
    last = trace.decision(trace.calls[3])
    assert [(h.content, h.action) for h in last.heard] == [(PASS, None)] * 3
    asked = next(r for r in model.requests if r.decision == last)
    chat = decision_chat(asked.decision or last)
    assert '{"action_type": "pass"}' in chat[0].content and PASS in chat[1].content
    assert "pass" not in decision_chat(Decision(observation=SCREEN))[0].content
    everything = team(ScriptedModel(lambda request: PASS), views=["same"] * 4)
    assert everything.passed == () and everything.message("agent_0:0").error is not None


# -- the vote ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "says", "passed", "error"),
    [
        pytest.param((9,), PASS, (0, 1, 3), None, id="one proposes"),
        pytest.param((), PASS, (0, 1, 2, 3), None, id="all pass, and so does the vote"),
        pytest.param((), "hm", (0,), "nobody proposed a valid action", id="beside nonsense"),
    ],
)
def test_a_pass_is_no_voice(
    wanted: tuple[int, ...], says: str, passed: tuple[int, ...], error: str | None
) -> None:
    """``says``: what all but the first say if they do not see what they want."""

    def say(request: Request) -> str:
        assert request.decision is not None
        said = SeesOrPasses(*wanted).say(request)
        first = request.decision.observation.elements[0].text == "button 0"
        return said if first or said != PASS else says

    trace = team(ScriptedModel(say))
    assert trace.passed == tuple(f"agent_{k}:0" for k in passed)
    assert all(trace.message(id).abstains for id in trace.passed)
    assert trace.ballot == {tap(k, f"button {k}").json(): 1.0 for k in wanted}
    vote = trace.message("vote:0")
    assert vote.error == error and vote.abstains == (len(passed) == 4)
    if len(passed) == 4:
        assert trace.undecided is not None and "0 failed, 4 passed" in trace.undecided
