"""BrowserGym's tasks behind our contract.

Two tests run BrowserGym itself in a Python that SWARM_UI_BROWSERGYM_PYTHON names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.action import Action
from swarm_ui.environments.check import contract_report
from swarm_ui.environments.web.browsergym import PYTHON, BrowserGymProcess, elements, written
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation

BUTTON = Element(index=0, role="button", text="Save")


@given(text=st.text(), kind=st.sampled_from(["input_text", "select", "answer", "click"]))
def test_a_text_is_one_literal_of_the_line_that_browsergym_executes(text: str, kind: str) -> None:
    option = Element(index=0, role="option", text=text)
    action = Action(action_type=kind, index=0, text=text)  # type: ignore[arg-type]
    (line,) = ast.parse(written(action, option, "7")).body
    assert isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
    said = [ast.literal_eval(argument) for argument in line.value.args]
    assert said[-1] == text and not line.value.keywords


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (Action(action_type="click", index=0), "click('7')"),
        (Action(action_type="scroll", direction="down"), "scroll(0, 500)"),
        (Action(action_type="keyboard_enter"), "keyboard_press('Enter')"),
        (Action(action_type="status", goal_status="infeasible"),
         "report_infeasible('infeasible')"),
    ],
)  # fmt: skip
def test_actions_are_calls_of_browsergyms_functions(action: Action, call: str) -> None:
    button = BUTTON if action.index == 0 else None
    assert written(action, button, "" if button is None else "7") == call


def test_elements_are_the_visible_ones_with_their_states() -> None:
    seen = page(
        node("1", "RootWebArea", children=["2", "3", "4", "6", "8", "9"]),
        node("2", "button", "Save", id="a", properties={"focused": True}),
        node("3", "button", "hidden", id="b"),
        node("4", "textbox", "Name", id="c", value="Ann", children=["5"]),
        node("5", "StaticText", "Ann"),
        node("6", "combobox", "Colour", id="d", value="red", children=["7"]),
        node("7", "option", "blue", id="e"),
        node("8", "generic", id="f", children=["10"]),
        node("9", "generic", id="g"),
        node("10", "StaticText", "plain words"),
        seen={"a": True, "b": False, "c": True, "d": True, "f": True, "g": True},
    )
    found = [(e.role, e.label, e.value, e.editable, id) for e, id in elements(seen)]
    assert found == [
        ("button", "Save", None, False, "a"),
        ("field", "Name", "Ann", True, "c"),
        ("field", "Colour", "red", True, "d"),
        ("option", "blue", None, False, "d"),
        ("text", "plain words", None, False, "f"),
        ("shape", "", None, False, "g"),
    ]


def test_a_python_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PYTHON, raising=False)
    with pytest.raises(ConfigError, match="pip install msgspec browsergym-webarena"):
        BrowserGymProcess("webarena")


def upstream(test: Callable[..., Any]) -> Any:
    """For tests with BrowserGym itself."""
    skip = pytest.mark.skipif(not os.environ.get(PYTHON), reason=f"{PYTHON} names no Python")
    return pytest.mark.slow(pytest.mark.timeout(900)(skip(test)))


@pytest.fixture
def html(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of MiniWoB++, where BrowserGym looks for them."""
    pages = Path(pytest.importorskip("miniwob").__file__).parent / "html" / "miniwob"
    monkeypatch.setenv("MINIWOB_URL", f"{pages.as_uri()}/")


@upstream
async def test_pages_of_browsergyms_miniwob_are_solved(html: None) -> None:
    environment = BrowserGymProcess("miniwob")
    try:
        for task, replies in SOLVED.items():
            observation = await environment.reset(task=task, seed=3)
            for reply in replies:
                step = await environment.step(reply(observation))
                observation = step.observation
            assert (step.reward, step.terminated) == (1.0, True), (task, step.note)
    finally:
        await environment.close()


@upstream
async def test_browsergyms_tasks_keep_the_contract(html: None) -> None:
    report = await contract_report(
        lambda: BrowserGymProcess("miniwob"), tasks=["click-test"], seeds=[1]
    )
    assert report.ok, str(report)


Reply = Callable[[Observation], Action]


def click(**wanted: str) -> Reply:
    def reply(screen: Observation) -> Action:
        found = next(e for e in screen.elements if all(getattr(e, k) == v for k, v in
                                                       wanted.items()))  # fmt: skip
        return Action(action_type="click", index=found.index)

    return reply


def write(field: int, part: int) -> Reply:
    """The quoted part of the goal with this number, into the field with this number."""

    def reply(screen: Observation) -> Action:
        fields = [e.index for e in screen.elements if e.editable]
        text = screen.goal.split('"')[2 * part + 1]
        return Action(action_type="input_text", index=fields[field], text=text)

    return reply


def choose(screen: Observation) -> Action:
    option = next(e for e in screen.elements if e.role == "option" and e.text in screen.goal)
    return Action(action_type="click", index=option.index)


SOLVED: Mapping[str, Sequence[Reply]] = {
    "click-test": [click(role="button")],
    "choose-list": [choose, click(text="Submit")],
    "login-user": [write(0, 0), write(1, 1), click(text="Login")],
}


def node(
    number: str,
    role: str,
    name: str = "",
    *,
    id: str = "",
    value: str = "",
    children: Sequence[str] = (),
    properties: Mapping[str, object] = {},
) -> dict[str, Any]:
    return {
        "nodeId": number, "role": {"value": role}, "name": {"value": name}, "browsergym_id": id,
        "value": {"value": value}, "childIds": [*children],
        "properties": [{"name": k, "value": {"value": v}} for k, v in properties.items()],
    }  # fmt: skip


def page(*nodes: dict[str, Any], seen: Mapping[str, bool]) -> dict[str, Any]:
    """An observation of BrowserGym: its nodes, and which of them are visible. All of those can be
    clicked but ``f``."""
    parents = {child: one["nodeId"] for one in nodes for child in one["childIds"]}
    linked = [one | ({"parentId": parents[one["nodeId"]]} if one["nodeId"] in parents else {})
              for one in nodes]  # fmt: skip
    shown = {
        id: {"visibility": float(visible), "bbox": [0.0, 0.0, 9.0, 9.0], "clickable": id != "f"}
        for id, visible in seen.items()
    }
    return {"axtree_object": {"nodes": linked}, "extra_element_properties": shown}
