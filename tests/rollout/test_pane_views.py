"""Agents that see one pane of a divided screen each, and a value that travels in a message."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_ui import CollabGraph, Element, Observation, Request
from swarm_ui.agent_view import Pane, panes
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.environments.phone.split_agents import scripted_reply
from swarm_ui.errors import ConfigError
from swarm_ui.model import Completion
from swarm_ui.nodes import AgentNode, ScriptedModel
from swarm_ui.rollout import GraphPolicy, rollout
from swarm_ui.topology import Edge
from swarm_ui.trace.records import Episode

SCREEN = Observation(
    goal="g",
    elements=tuple(
        Element(index=k, role="button", text=f"b{k}", pane=pane) for k, pane in enumerate("llrr")
    ),
)


def answer(request: Request) -> Completion:
    assert request.decision is not None
    text = scripted_reply(request.decision)
    return Completion(text=text, prompt="", prompt_format="compact")


async def play(task: str, seed: int, edges: list[Edge], *, view: bool = True) -> Episode:
    phone = SplitPhone(agents=6)
    apps = phone.team(task, seed)
    model = ScriptedModel(answer)
    nodes = [AgentNode(app, model, view=Pane(name=app) if view else "same") for app in apps]
    team = CollabGraph(nodes, edges, output=phone.spec(task).acting)
    return await rollout(phone, GraphPolicy(team), task=task, seed=seed)


@pytest.mark.parametrize("task", [*split_tasks("train"), *split_tasks("new_templates")])
async def test_scripted_teams_need_their_senders(task: str) -> None:
    phone = SplitPhone(agents=6)
    spec = phone.spec(task)
    needed = [(app, spec.acting) for app in spec.sources]
    assert (await play(task, 7, needed)).success
    assert (await play(task, 7, [])).success is False
    for edge in needed:
        assert (await play(task, 7, [e for e in needed if e != edge])).success is False


def test_panes_by_number_are_in_the_order_of_the_screen() -> None:
    orders = [pane.order(SCREEN) for pane in panes(3)]
    assert orders == [[0, 1], [2, 3], []]


@pytest.mark.parametrize("given", [{}, {"name": "l", "part": 0}, {"part": -1}])
def test_a_pane_has_either_a_name_or_a_number(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected either a name or a part >= 0"):
        Pane(**given)


def test_a_team_with_views_by_pane_has_the_acting_app_first() -> None:
    phone = SplitPhone(agents=4)
    screen = at_once(phone.reset(task="split-phone-message", seed=2))
    order = list(dict.fromkeys(e.pane for e in screen.elements))
    sender = f"agent_{order.index('contacts')}"
    team = CollabGraph.collaborative(
        5, 1, model=ScriptedModel(answer), views="pane", edges=[(sender, "agent_0")]
    )
    trace = team.run_sync(screen)
    for call in trace.calls:
        if call.node != "vote":
            at = int(call.node.removeprefix("agent_"))
            seen = {e.pane for e in trace.decision(call).observation.elements}
            assert seen == set(order[at : at + 1])
    assert order[0] == "messages" and str(trace.action).startswith("click “compose”")
