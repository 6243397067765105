"""GPTSwarm interop without GPTSwarm: what travels, names, edges, and the missing extra.

Stand-ins take the place of GPTSwarm's objects here; what the real package does is checked by
test_gptswarm_package.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from swarm_ui import CollabGraph
from swarm_ui.errors import GraphError, MissingExtra
from swarm_ui.nodes import function_node
from swarm_ui.nodes.gptswarm import (
    GPTSwarmNode,
    ImportedSwarm,
    import_graph,
    import_swarm,
)


@pytest.mark.parametrize("use", [GPTSwarmNode, import_graph, import_swarm])
def test_without_the_package_the_extra_is_named(
    use: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "swarm", None)
    with pytest.raises(MissingExtra, match=r"'swarm.*swarm-ui\[gptswarm\]") as raised:
        use(object())
    assert raised.value.extra == "gptswarm"


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
