"""Observations: what a screen shows, in one form for all environments and agents."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, Self

import msgspec

from swarm_ui.action import Action, ActionType

Role = Literal[
    "app", "button", "link", "item", "text", "label", "cell", "heading", "icon", "shape",
    "field", "area", "checkbox", "radio", "option", "switch", "tab", "image", "dialog",
]  # fmt: skip

Bounds = tuple[int, int, int, int]
Geometry = Literal["", "box"]
"""Whether texts have the bounds of elements: not, or all four edges in pixels."""


class Element(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """An element of the screen that can be read or acted on."""

    index: int = -1
    """Position in the observation: what an action's ``index`` refers to; -1: not in one yet."""
    role: Role
    text: str = ""
    description: str = ""
    """Content description (Android) or accessible name (web)."""
    hint: str = ""
    """Placeholder of an empty field."""
    value: str | None = None
    """Contents of a field; ``None`` where the element holds no text of the user's."""
    checked: bool | None = None
    """State of a switch, check box, radio button or option; ``None`` where it has none."""
    selected: bool | None = None
    clickable: bool = True
    editable: bool = False
    enabled: bool = True
    focused: bool = False
    scrollable: bool = False
    bounds: Bounds | None = None
    """Left, top, right, bottom in pixels of the screen; ``None`` if unknown."""
    class_name: str = ""
    """Class of the widget, such as ``android.widget.EditText``; empty if unknown."""
    pane: str = ""
    """Part of a divided screen that the element is in, such as an app; empty: it is not divided.
    Prompts do not contain it: an agent sees a pane alone with the view
    :class:`~swarm_ui.agent_view.Pane`."""

    @classmethod
    def button(cls, text: str) -> Self:
        """A button with this text."""
        return cls(role="button", text=text)

    @classmethod
    def field(cls, label: str, value: str = "") -> Self:
        """A field that takes text, with its present contents."""
        return cls(role="field", text=label, value=value, editable=True)

    @classmethod
    def line(cls, text: str) -> Self:
        """A line of text, which can only be read."""
        return cls(role="text", text=text, clickable=False)

    @property
    def label(self) -> str:
        """Readable name of the element: its text, else description, else hint."""
        return self.text or self.description or self.hint


class Past(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """One action already executed in this episode."""

    action: Action
    role: str = ""
    """Role of the element acted on; empty for actions without an element."""
    label: str = ""


class Observation(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A screen, the goal, and the actions so far."""

    goal: str
    elements: tuple[Element, ...]
    app: str = ""
    """Current app, page title or URL."""
    history: tuple[Past, ...] = ()
    """All executed actions, oldest first. A model may show only the last ones."""
    actions: tuple[ActionType, ...] = ()
    """Kinds of actions that are supported here (web pages have no ``status``); empty: all."""
    png: bytes | None = None
    """Screenshot; only when the environment was asked for one."""
    more: tuple[int, int] | None = None
    """Number of elements that are not listed, before and after the listed ones; scrolling lists
    them. ``None``: all are listed."""
    geometry: Geometry = ""
    """Whether :func:`render` writes the bounds of elements."""

    def offers(self, kind: str) -> bool:
        """Whether actions of this kind are supported here."""
        return not self.actions or kind in self.actions

    def element(self, index: int | None) -> Element | None:
        """The element an action points at, or ``None`` if there is no such element."""
        if index is None or not 0 <= index < len(self.elements):
            return None
        return self.elements[index]

    def past(self, action: Action) -> Past:
        """The record of an action on this screen, for the history of the next screen."""
        element = self.element(action.index)
        if element is None:
            return Past(action=action)
        return Past(action=action, role=element.role, label=element.label)

    def screen_key(self) -> tuple[object, ...]:
        """A key that is equal for observations that show the same screen for the same goal."""
        return (self.goal, self.app, self.elements)


def render(
    observation: Observation,
    line: Callable[[Element], str] | None = None,
    *,
    dropped: Collection[int] = (),
) -> str:
    """The screen as text for a language model: one line per element, the index first.

    With ``Observation.geometry``, a line ends with the element's bounds. Additional lines give the
    number of elements before and after the listed ones, and of those that are left out.

    Args:
        line: formats one element; default: the format below.
        dropped: indices of elements to leave out.

    >>> screen = Observation(goal="g", elements=(Element(index=0, role="button", text="Save"),))
    >>> print(render(screen))
    0: button "Save"
    """
    write, boxes = line or _line, observation.geometry == "box"
    shown = [e for e in observation.elements if e.index not in dropped]
    lines = [
        f"{write(e)} at {','.join(map(str, e.bounds))}" if boxes and e.bounds else write(e)
        for e in shown
    ]
    if len(shown) < len(observation.elements):
        lines.append(f"({len(observation.elements) - len(shown)} elements are left out)")
    before, after = observation.more or (0, 0)
    if before:
        lines.insert(0, f"({before} more elements come before these: scroll up)")
    if after:
        lines.append(f"({after} more elements follow: scroll down)")
    return "\n".join(lines)


def _line(element: Element) -> str:
    parts = [f'{element.index}: {element.role} "{element.label}"']
    if element.value is not None:
        parts.append(f'value="{element.value}"')
    if element.hint and element.hint != element.label:
        parts.append(f'hint="{element.hint}"')
    return " ".join([*parts, *state_words(element)])


def state_words(element: Element) -> list[str]:
    """The state of an element as words: on or off, selected, disabled, scrollable."""
    words = [] if element.checked is None else ["on" if element.checked else "off"]
    states = (
        (element.selected, "selected"),
        (not element.enabled, "disabled"),
        (element.scrollable, "scrollable"),
    )
    return words + [word for holds, word in states if holds]
