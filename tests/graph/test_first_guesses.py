"""What users of other libraries try first on a graph: it works, or the error says what to do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from swarm_ui import CollabGraph, GraphError, shapes
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.nodes import AgentNode, ChatNode, MajorityVote, ScriptedModel, function_node


def waits(request: Any) -> str:
    return '{"action_type": "wait"}'


def sent(message: Message) -> bool:
    return bool(message.content)


MODEL = ScriptedModel(waits)


def team() -> CollabGraph:
    nodes = [AgentNode(name, MODEL) for name in ("ada", "grace", "edsger")]
    graph = CollabGraph([*nodes, MajorityVote()], [("ada", "grace")], rounds=3)
    graph = graph.with_edge("edsger", "ada", delay=1).with_edge("grace", "edsger", when=sent)
    return graph.named("three")


def test_a_graph_is_a_collection_of_its_nodes() -> None:
    graph = team()
    assert len(graph) == 4
    assert list(graph) == ["ada", "grace", "edsger", "vote"]
    assert "ada" in graph and "adda" not in graph
    assert graph["ada"] is graph.nodes["ada"]
    with pytest.raises(GraphError, match=r"node 'adda' is not in the graph .did you mean 'ada'"):
        graph["adda"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_and_pickles_decide_the_same(copied: Callable[[CollabGraph], CollabGraph]) -> None:
    graph = team()
    other = copied(graph)
    assert other is not graph and other.to_json() == graph.to_json()
    assert other.delays == graph.delays
    assert other.run_sync("wait").messages == graph.run_sync("wait").messages
    assert other["ada"].model is other["grace"].model  # type: ignore[attr-defined]


def test_assignment_names_the_operation() -> None:
    with pytest.raises(AttributeError, match="with_rounds"):
        team().rounds = 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda n: CollabGraph(n, {"ada": ["grace"]}), "pairs .*of names.*got 'ada'"),
        (lambda n: CollabGraph(n, "ada>grace"), "pairs .*of names.*got 'a'"),
        (lambda n: CollabGraph(n, [(n[0], n[1])]), "of names, .*, not of nodes"),
        (lambda n: CollabGraph(n, rounds="2"), "rounds must be a whole number"),
        (lambda n: CollabGraph(n, rounds=1.5), "rounds must be a whole number"),
        (lambda n: CollabGraph(CollabGraph(n, shapes.chain)), r"write \[graph\] to nest it"),
    ],
)
def test_arguments_of_another_kind(make: Callable[[Any], CollabGraph], said: str) -> None:
    with pytest.raises(GraphError, match=said):
        make([AgentNode("ada", MODEL), AgentNode("grace", MODEL)])


@pytest.mark.parametrize(
    "make",
    [
        lambda model: AgentNode("ada", model),
        lambda model: ChatNode("ada", model),
        lambda model: CollabGraph.collaborative(2, 1, model=model),
        lambda model: CollabGraph.solo(model),
    ],
)
@pytest.mark.parametrize("model", ["gpt-4", None, ScriptedModel])
def test_a_name_is_not_a_model(make: Callable[[Any], object], model: object) -> None:
    with pytest.raises(ConfigError, match="expected a model, such as OpenAIModel"):
        make(model)


@pytest.mark.parametrize(
    ("screen", "said"),
    [(3, "of type int"), (None, "of type NoneType"), (PhoneEnvironment(), "its reset.. returns")],
)
def test_a_graph_runs_on_a_screen_or_a_text(screen: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"runs on an Observation.*{said}"):
        team().run_sync(screen)


def test_a_function_with_other_arguments_is_no_node() -> None:
    function: Any = lambda inbox: "hello"  # noqa: E731
    with pytest.raises(ConfigError, match=r"gets the arguments \(inbox, context\).*has \(inbox\)"):
        function_node(id="greet")(function)
    assert function_node(id="any")(lambda *given: "hello").id == "any"
    assert function_node(id="str")(max).id == "str"  # it does not tell its arguments


def test_an_unknown_message_of_a_trace() -> None:
    trace = team().run_sync("wait")
    for wrong in ("ada", "adda:0"):
        with pytest.raises(KeyError, match=f"no message '{wrong}' in this trace.*ada:0"):
            trace.message(wrong)
