"""Old names of the documented API work for one version, and warn."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import pytest

from swarm_ui import (
    CollabGraph,
    Episode,
    append_jsonl,
    execute,
    function_node,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.action import Action
from swarm_ui.agent_view import View
from swarm_ui.deprecation import MODULES, NAMES, renamed_keywords
from swarm_ui.engine.events import Event, Token
from swarm_ui.errors import MissingExtra
from swarm_ui.message import Message
from swarm_ui.node import NodeContext
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.config import TeamConfig, current_names
from swarm_ui.storage import sqlite_store


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
    with pytest.warns(DeprecationWarning, match="'communication_edges'"):
        assert graph.talk == graph.communication_edges


async def test_execute_takes_the_old_keywords() -> None:
    @function_node
    def echo(inbox: list[Message], context: NodeContext) -> str:
        return context.observation.goal

    screen = Observation(goal="hello", elements=())
    with pytest.warns(DeprecationWarning, match="'run' was renamed to 'run_id'"):
        trace = await execute(CollabGraph([echo]), screen, run="r")  # type: ignore[call-arg]
    assert trace.run == "r"
    with pytest.warns(DeprecationWarning, match="'given' was renamed to 'cached'"):
        again = await execute(CollabGraph([echo]), screen, given=trace)  # type: ignore[call-arg]
    assert again.messages == trace.messages


def test_trace_files_are_written_with_the_old_keyword(tmp_path: Path) -> None:
    episode = Episode(environment="phone", task="t", seed=1, success=True)
    for write in (write_jsonl, append_jsonl):
        with pytest.warns(DeprecationWarning, match="'episodes' was renamed to 'records'"):
            write(tmp_path / "e.jsonl", episodes=[episode])  # type: ignore[call-arg]
    assert read_jsonl(tmp_path / "e.jsonl") == [episode, episode]


def test_a_node_streams_under_the_old_name_of_the_method() -> None:
    @function_node
    def echo(inbox: list[Message], context: NodeContext) -> str:
        with pytest.warns(DeprecationWarning, match="NodeContext.tell was renamed to 'emit_token'"):
            context.tell("a piece")
        return "the answer"

    events: list[Event] = []
    CollabGraph([echo]).run_sync("hello", on_event=events.append)
    assert [event.text for event in events if isinstance(event, Token)] == ["a piece"]


def test_a_view_converts_actions_under_the_old_name_of_the_method() -> None:
    screen = Observation(goal="", elements=(Element(index=0, role="button", text="OK"),))
    view, tap = View(screen, []), Action(action_type="click", index=0)
    with pytest.warns(DeprecationWarning, match="'from_screen_with_hidden'"):
        assert view.told(tap) == view.from_screen_with_hidden(tap) == tap
    assert view.from_screen(tap) is None


def test_a_training_configuration_takes_the_old_name_of_a_setting() -> None:
    with pytest.warns(DeprecationWarning, match="edge_update_interval"):
        config = TeamConfig(edge_every=3)  # type: ignore[call-arg]
    assert config.edge_update_interval == 3
    assert current_names({"edge_every": 2, "seed": 1}) == {"edge_update_interval": 2, "seed": 1}


@pytest.mark.parametrize(("old", "new"), MODULES.items(), ids=MODULES)
def test_every_old_module_name_imports_the_module_of_today(old: str, new: str) -> None:
    name = f"swarm_ui.{old}"
    sys.modules.pop(name, None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = importlib.import_module(name)
    except MissingExtra:
        pytest.skip("needs an extra")
    assert module is importlib.import_module(f"swarm_ui.{new}")
    assert module.__name__ == module.__spec__.name == f"swarm_ui.{new}"  # type: ignore[union-attr]
    said = [str(each.message) for each in caught if each.category is DeprecationWarning]
    assert any(f"{name} was renamed to swarm_ui.{new};" in text for text in said), said


def test_a_function_of_a_package_is_not_replaced_by_a_module_with_an_old_name() -> None:
    stage1 = importlib.import_module("swarm_ui.optim.stage1")
    finetune = stage1.finetune
    sys.modules.pop("swarm_ui.optim.corpus.finetune", None)
    with warnings.catch_warnings():  # the first import of the package has a warning of its own
        warnings.simplefilter("ignore")
        importlib.import_module("swarm_ui.optim.corpus")
    with pytest.warns(DeprecationWarning, match="finetune was renamed"):
        importlib.import_module("swarm_ui.optim.corpus.finetune")
    assert stage1.finetune is finetune and callable(finetune)
    assert sys.modules["swarm_ui.optim.corpus"] is stage1


@pytest.mark.parametrize(
    ("module", "old", "new"), [(m, a, b) for m, names in NAMES.items() for a, b in names.items()]
)
def test_every_old_name_in_a_module_is_the_one_of_today(module: str, old: str, new: str) -> None:
    where = importlib.import_module(f"swarm_ui.{module}".rstrip("."))
    place, _, name = new.partition(":")
    with pytest.warns(DeprecationWarning, match=f"{old} was renamed to swarm_ui.{place}.{name};"):
        found = getattr(where, old)
    assert found is getattr(importlib.import_module(f"swarm_ui.{place}"), name)


def test_a_module_inside_a_renamed_package_is_not_loaded_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert importlib.import_module("swarm_ui.stores.sqlite_store") is sqlite_store
    with pytest.raises(ImportError):
        importlib.import_module("swarm_ui.no_such_module")
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        getattr(importlib.import_module("swarm_ui.action"), "x")  # noqa: B009
