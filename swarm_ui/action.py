"""One action on a user interface, in AndroidWorld's JSON vocabulary (plus ``select`` for the web).

Source of the vocabulary: google-research/android_world, ``env/json_action.py``. An action also has
``target``, the label of its element, which is written before the index. A small model first copies
the label and then finds its index, and a person can read a trace. Only the index (or the pixels)
determines the element.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from swarm_ui.json_text import LONGEST, Found, encodable, last_object

ActionType = Literal[
    "click", "double_tap", "long_press", "input_text", "select", "scroll", "swipe",
    "navigate_home", "navigate_back", "keyboard_enter", "open_app", "wait", "answer", "status",
]  # fmt: skip
Direction = Literal["up", "down", "left", "right"]
GoalStatus = Literal["complete", "infeasible"]

ACTION_TYPES: tuple[str, ...] = get_args(ActionType)
POINTING = frozenset({"click", "double_tap", "long_press", "input_text", "select"})
_NEEDS_TEXT = frozenset({"input_text", "select", "answer"})
_TEXTS = ("target", "text", "app_name", "keycode")

LARGEST_NUMBER = 2**31 - 1
"""Bound of the indices and pixels of an action."""
LONGEST_TEXT = 10_000
"""Maximum number of characters in a text of an action; a longer ``target`` is cut."""

ActionKey = tuple[str | int | None, ...]


class Action(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A validated UI action. Wrong fields raise ``ValueError``. A lone surrogate in a text becomes
    ``?``, because no file can hold it."""

    action_type: ActionType
    target: str | None = None
    """Label of the element, for readers and small models. It is never used to find the element."""
    index: int | None = None
    """Position of the element in the observation; ``None`` for actions without an element."""
    x: int | None = None
    """Pixels from the left; together with ``y`` instead of ``index``."""
    y: int | None = None
    text: str | None = None
    direction: Direction | None = None
    """The side from which new content moves into view, as in AndroidWorld's ``scroll``."""
    goal_status: GoalStatus | None = None
    app_name: str | None = None
    keycode: str | None = None
    clear_text: bool | None = None
    """``False``: ``input_text`` appends to the contents of a field. Otherwise it replaces them."""
    to_index: int | None = None
    """Element on which a ``swipe`` from ``index`` (or ``x`` and ``y``) ends: a drag and drop."""
    to_x: int | None = None
    """Pixels from the left where a ``swipe`` ends; together with ``to_y`` instead of
    ``to_index``."""
    to_y: int | None = None

    def __post_init__(self) -> None:
        for name in _TEXTS:
            text = getattr(self, name)
            if text is None:
                continue
            if len(text) > LONGEST_TEXT and name != "target":
                raise ValueError(
                    f"'{name}' has {len(text)} characters; at most {LONGEST_TEXT} are allowed"
                )
            if len(text) > LONGEST_TEXT or not text.isascii():
                msgspec.structs.force_setattr(self, name, encodable(text[:LONGEST_TEXT]))
        for value in (self.index, self.x, self.y, self.to_index, self.to_x, self.to_y):
            if value is not None and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
                raise ValueError(f"indices and pixels must lie within ±{LARGEST_NUMBER}")
        for wrong, text in self._checks():
            if wrong:
                raise ValueError(f"{self.action_type}: {text}")

    def _checks(self) -> tuple[tuple[bool, str], ...]:
        kind, index, to_index = self.action_type, self.index, self.to_index
        point = index is not None or self.x is not None
        drag = to_index is not None or self.to_x is not None or self.to_y is not None
        sides = kind in ("scroll", "swipe") and not drag
        # fmt: off
        return (
            (index is not None and (self.x is not None or self.y is not None),
             "give 'index' or 'x' and 'y', not both"),
            (index is not None and index < 0, "'index' must be >= 0"),
            ((self.x is None) != (self.y is None), "'x' and 'y' belong together"),
            (kind in POINTING and not point, "needs 'index' (or 'x' and 'y')"),
            (kind in _NEEDS_TEXT and self.text is None, "needs 'text'"),
            (drag and kind != "swipe", "'to_index', 'to_x' and 'to_y' belong to 'swipe' only"),
            (drag and not point, "a drag needs 'index' (or 'x' and 'y') where it starts"),
            (drag and self.direction is not None,
             "give 'direction' or where the drag ends, not both"),
            ((self.to_x is None) != (self.to_y is None), "'to_x' and 'to_y' belong together"),
            (to_index is not None and (self.to_x is not None or to_index < 0),
             "'to_index' must be >= 0, and cannot be given with 'to_x'"),
            (sides and self.direction is None, "needs 'direction' (up, down, left or right)"),
            (kind == "status" and self.goal_status is None,
             "needs 'goal_status' (complete or infeasible)"),
            (kind == "open_app" and not self.app_name, "needs 'app_name'"),
        )
        # fmt: on

    @property
    def targets(self) -> tuple[int, ...]:
        """Indices of the elements that it refers to; a drag can have two."""
        return tuple(index for index in (self.index, self.to_index) if index is not None)

    @property
    def key(self) -> ActionKey:
        """A value that is equal for equal actions. It ignores only ``target``."""
        where = (self.action_type, self.index, self.x, self.y)
        what = (self.text, self.direction, self.goal_status, self.app_name, self.keycode)
        drag = (self.to_index, self.to_x, self.to_y)
        # Ties of votes are broken by a hash of the key, so fields that few actions have come last.
        more = drag if drag != (None, None, None) else ()
        return (*where, *what, *more, *(() if self.clear_text is None else (self.clear_text,)))

    def json(self) -> str:
        """The action as one line of JSON: fields in the order of the class, without unset ones."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        at = None if self.x is None else f"({self.x}, {self.y})"
        to = None if self.to_x is None else f"({self.to_x}, {self.to_y})"
        parts = (
            self.action_type,
            f"“{self.target}”" if self.target else None,
            at if self.index is None else f"[{self.index}]",
            None if self.text is None else repr(self.text),
            self.direction, self.goal_status, self.app_name, self.keycode,
            None if self.to_index is None and to is None else f"to {to or [self.to_index]}",
        )  # fmt: skip
        return " ".join(part for part in parts if part is not None)


class Unparsed(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a reply without a valid action: a value with a reason, not an exception."""

    reason: str
    text: str


class Abstain(msgspec.Struct, frozen=True):
    """Abstention: a valid reply of agents that see only a part of the screen."""

    def json(self) -> str:
        """The abstention as an agent writes it."""
        return '{"action_type":"pass"}'


def parse_reply(reply: str) -> Action | Abstain | Unparsed:
    """Like :func:`parse_action`, for an agent that may abstain."""
    found = last_object(reply)
    if found is not None and found.value.get("action_type") == "pass":
        return Abstain()
    return _read(reply, found)


def parse_action(reply: str) -> Action | Unparsed:
    """Read the last JSON object of ``reply`` as an :class:`Action`.

    Tolerates free text around the object, code fences and unknown keys (which are dropped);
    never evaluates anything. AndroidWorld's spelling of numbers as strings is accepted.
    """
    return _read(reply, last_object(reply))


def _read(reply: str, found: Found | None) -> Action | Unparsed:
    """The action that an object of a reply describes; ``found``: its last one."""
    if len(reply) > LONGEST:
        reason = f"the reply has {len(reply)} characters; at most {LONGEST} are read"
        return Unparsed(reason=reason, text=reply)
    if found is None:
        return Unparsed(reason="no JSON object in the reply", text=reply)
    known = Action.__struct_fields__
    fields = {k: v for k, v in found.value.items() if k in known and v is not None}
    kind = fields.get("action_type")
    if kind not in ACTION_TYPES:
        return Unparsed(
            reason=f"unknown action_type {str(kind)[:80]!r}; expected one of "
            f"{', '.join(ACTION_TYPES)}",
            text=reply,
        )
    try:
        return msgspec.convert(fields, Action, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        return Unparsed(reason=str(error), text=reply)
