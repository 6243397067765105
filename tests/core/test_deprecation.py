"""Old names of the documented API work for one version, and warn."""

from __future__ import annotations

import pytest

from swarm_ui import CollabGraph, function_node
from swarm_ui.deprecation import renamed_keywords
from swarm_ui.message import Message
from swarm_ui.node import NodeContext
from swarm_ui.optim.config import TeamConfig, current_names


@renamed_keywords(tell="on_event", run="run_id")
def run(goal: str, *, on_event: str = "", run_id: str = "") -> tuple[str, str, str]:
    """A function with renamed arguments."""
    return goal, on_event, run_id


def test_an_old_keyword_works_and_the_warning_names_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="'tell' was renamed to 'on_event'") as warned:
        assert run("g", tell="t") == ("g", "t", "")  # type: ignore[call-arg]
    assert warned[0].filename == __file__
    assert run("g", on_event="t", run_id="r") == ("g", "t", "r")
    with pytest.raises(TypeError, match="got both 'on_event' and 'tell'"):
        run("g", on_event="t", tell="t")  # type: ignore[call-arg]


def test_a_run_takes_the_old_keywords() -> None:
    @function_node
    def echo(inbox: list[Message], context: NodeContext) -> str:
        return context.observation.goal

    graph = CollabGraph([echo])
    events: list[object] = []
    with pytest.warns(DeprecationWarning, match="run_sync"):
        trace = graph.run_sync("hello", run="r", tell=events.append)  # type: ignore[call-arg]
    assert trace.run == "r" and events
    with pytest.warns(DeprecationWarning, match="CollabGraph.heard was renamed to 'predecessors'"):
        assert graph.heard == graph.predecessors


def test_a_training_configuration_takes_the_old_name_of_a_setting() -> None:
    with pytest.warns(DeprecationWarning, match="edge_update_interval"):
        config = TeamConfig(edge_every=3)  # type: ignore[call-arg]
    assert config.edge_update_interval == 3
    assert current_names({"edge_every": 2, "seed": 1}) == {"edge_update_interval": 2, "seed": 1}
