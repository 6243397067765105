"""AutoWebBench's calls, such as ``click('SD')``: read without running anything, and written.

The official scorer hands a model's reply to Python's ``eval``. Here a call is parsed, and its
arguments must be literals; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import re
import warnings

import msgspec

from swarm_ui.action import Action

_CALL = re.compile(r"(\w+)\((.*)\)")
_LONG_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r"})

# Where each function has its element and its parameter; ``None``: it has none.
_PLACES: dict[str, tuple[int | None, int | None]] = {
    "click": (0, None),
    "hover": (0, None),
    "select": (0, 1),
    "type_string": (0, 1),
    "scroll_page": (None, 0),
    "go": (None, 0),
    "jump_to": (None, 0),
    "switch_tab": (None, 0),
    "user_input": (None, 0),
    "finish": (None, 0),
}
FUNCTIONS = tuple(_PLACES)


class Call(msgspec.Struct, frozen=True):
    """A call as both scorers compare it; all ``None``: there is no call in the text."""

    function: str | None = None
    element: object = None
    """Id of the element; any literal, since a model may write any."""
    parameter: object = None
    """Option, text, direction, address, tab, message or answer."""


def official_call(text: str) -> Call | None:
    """A call as the official scorer reads it; ``None`` where that raises, and drops the step.

    It looks at the first line only, and raises on arguments that are no Python (also an id
    without quotes, or a line break in a text) and on missing ones (also in ``finish()``).
    Expressions which ``eval`` could compute but which are no literals count as unreadable.
    """
    found = _CALL.match(text)
    if found is None:
        return Call()
    arguments = _literals(found[2])
    if arguments is None:
        return None
    element, parameter = _PLACES.get(found[1], (None, None))
    if max(element or 0, parameter or 0) >= len(arguments) and found[1] in _PLACES:
        return None
    return Call(
        found[1],
        None if element is None else arguments[element],
        None if parameter is None else arguments[parameter],
    )


def strict_call(text: str) -> Call:
    """A call, read with good will; what still cannot be read is no call, which counts as wrong.

    A text may hold line breaks, and a missing argument is ``None``.
    """
    text = text.strip()
    first = _CALL.match(text)
    found = first if first and _literals(first[2]) is not None else _LONG_CALL.match(text)
    arguments = _literals(found[2].translate(_BREAKS)) if found else None
    if found is None or arguments is None:
        return Call()
    element, parameter = _PLACES.get(found[1], (None, None))
    given = dict(enumerate(arguments))
    return Call(
        found[1],
        None if element is None else given.get(element),
        None if parameter is None else given.get(parameter),
    )


def _literals(arguments: str) -> tuple[object, ...] | None:
    """Arguments of a call; ``None`` if they are not all literals given by position."""
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of "\d" in a text
            tree = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
            return None
        return tuple(ast.literal_eval(argument) for argument in tree.args)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def to_text(action: Action, element: str) -> str:
    """An agent's action as a call; empty if there is none for it.

    Args:
        action: what the agent did. ``long_press`` stands for ``hover``, ``open_app`` for
            ``jump_to``, ``answer`` and ``status`` "complete" for ``finish``, and ``status``
            "infeasible" for ``user_input``: only the user can go on.
        element: id of the element it points at; empty if that has none.
    """
    kind, text = action.action_type, action.text or ""
    if kind == "click":
        return f"click({element!r})"
    if kind == "long_press":
        return f"hover({element!r})"
    if kind == "input_text":
        return f"type_string({element!r}, {text!r}, False)"
    if kind == "select":
        return f"select({element!r}, {text!r})"
    if kind == "scroll" and action.direction in ("up", "down"):
        return f"scroll_page({action.direction!r})"
    if kind == "open_app":
        return f"jump_to({action.app_name!r}, False)"
    if kind == "status" and action.goal_status == "infeasible":
        return f"user_input({text!r})"
    return {"navigate_back": "go('backward')", "answer": f"finish({text!r})",
            "status": "finish()"}.get(kind, "")  # fmt: skip


def to_action(call: Call, index: int | None, label: str = "") -> Action | None:
    """The action an agent would have to do; ``None`` if there is none for this call.

    Args:
        call: of the data.
        index: where its element stands on the screen; ``None`` if it is not there.
        label: of that element.
    """
    text = "" if call.parameter is None else str(call.parameter)
    target = label or None
    if call.element is not None:
        if index is None:
            return None
        match call.function:
            case "click":
                return Action(action_type="click", target=target, index=index)
            case "hover":
                return Action(action_type="long_press", target=target, index=index)
            case "type_string":
                return Action(action_type="input_text", target=target, index=index, text=text)
            case "select":
                return Action(action_type="select", target=target, index=index, text=text)
    match call.function, text:
        case "scroll_page", ("up" | "down") as way:
            return Action(action_type="scroll", direction="up" if way == "up" else "down")
        case "go", "backward":
            return Action(action_type="navigate_back")
        case "jump_to", address if address:
            return Action(action_type="open_app", app_name=address)
        case "finish", "":
            return Action(action_type="status", goal_status="complete")
        case "finish", _:
            return Action(action_type="answer", text=text)
        case "user_input", _:
            return Action(action_type="status", goal_status="infeasible", text=text or None)
    return None
