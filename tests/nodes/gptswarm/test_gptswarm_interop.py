"""GPTSwarm interop without GPTSwarm: what travels, names, edges, and the missing extra.

Stand-ins take the place of GPTSwarm's objects here; what the real package does is checked by
test_gptswarm_package.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from swarm_ui import CollabGraph
from swarm_ui.errors import GraphError, MissingExtra
from swarm_ui.nodes import function_node
from swarm_ui.nodes.gptswarm import (
    GPTSwarmNode,
    ImportedSwarm,
    edges_among,
    import_graph,
    import_swarm,
    names_of,
)


@pytest.mark.parametrize("use", [GPTSwarmNode, import_graph, import_swarm])
def test_without_the_package_the_extra_is_named(
    use: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "swarm", None)
    with pytest.raises(MissingExtra, match=r"'swarm.*swarm-ui\[gptswarm\]") as raised:
        use(object())
    assert raised.value.extra == "gptswarm"


# -- structure (stand-ins with the fields of GPTSwarm's nodes) ------------------------------------


class Step(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(predecessors=[], successors=[])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step)  # identity must not be asked of ==

    __hash__ = object.__hash__


class Final(Step):
    pass


def linked(*pairs: tuple[Step, Step]) -> None:
    for sender, listener in pairs:
        sender.successors.append(listener)
        listener.predecessors.append(sender)


def test_operations_are_named_by_class_and_place() -> None:
    steps = [Step(), Final(), Step()]
    assert list(names_of(steps, "0.A.").values()) == ["0.A.Step.0", "0.A.Final", "0.A.Step.1"]


def test_edges_come_in_the_order_in_which_each_listener_reads() -> None:
    a, b, end, stranger = Step(), Step(), Final(), Step()
    linked((b, end), (stranger, end), (a, end))
    names = names_of([a, b, end])
    assert edges_among([a, b, end], names) == [("Step.1", "Final"), ("Step.0", "Final")]
    a.successors.clear()  # what Swarm does to agents that shall have no inner edges
    assert edges_among([a, b, end], names) == [("Step.1", "Final")]


def team(*names: str, edges: list[tuple[str, str]]) -> CollabGraph:
    @function_node
    def say(inbox: Any, context: Any) -> str:
        return str(context.node)

    return CollabGraph(dict.fromkeys(names, say), edges, output=names[-1])


def test_drawn_edges_join_the_fixed_ones_without_cycles() -> None:
    fixed = [("a", "b"), ("b", "c")]
    drawn = [("c", "x"), ("x", "a"), ("x", "end"), ("c", "end")]
    found = ImportedSwarm(team("a", "b", "c", "x", "end", edges=fixed), dict.fromkeys(drawn, 0.5))
    assert found.with_edges(drawn).edges == (*fixed, ("c", "x"), ("x", "end"), ("c", "end"))
    assert found.with_edges(drawn[1:2]).edges == (*fixed, ("x", "a"))
    with pytest.raises(GraphError, match="b -> end is not a potential edge"):
        found.with_edges([("b", "end")])
