"""The actions that a screen offers as a list, for random walks and for actions by number; and
set-of-marks screenshots: numbered boxes, with the numbers that actions refer to."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from swarm_ui.action import ACTION_TYPES, Action, ActionType, Direction, GoalStatus
from swarm_ui.observation import Element, Observation

_SCROLLS: tuple[Direction, ...] = ("down", "up")
_STATUSES: tuple[GoalStatus, ...] = ("complete", "infeasible")
_PLAIN: tuple[ActionType, ...] = ("navigate_back", "navigate_home", "keyboard_enter", "wait")
_TAPS: tuple[ActionType, ...] = ("double_tap", "long_press")
_WORD = re.compile(r"\w(?:[\w@.,:/'-]*\w)?")
_COLOURS = ("#d00000", "#0050d0", "#007a33", "#a000a0", "#b35900")
LONGEST = 3
"""Maximum number of words in a phrase of the goal that is offered as a text to type."""


def choices(screen: Observation, texts: Sequence[str] = ()) -> list[Action]:
    """Every action that the screen offers, except ``open_app``. Actions on elements come first, and
    ``status`` comes last.

    Args:
        screen: only actions that it offers are listed.
        texts: texts to type into each field, to select, or to answer with.
    """
    return list(_all(screen, texts))


def phrases(goal: str) -> list[str]:
    """Texts that a goal may ask to type: its quoted parts, then its runs of up to three words."""
    quoted = re.findall(r"[\"“‘']([^\"”’']+)[\"”’']", goal)
    words = _WORD.findall(goal)
    runs = [
        " ".join(words[start : start + length])
        for length in range(1, LONGEST + 1)
        for start in range(len(words) - length + 1)
    ]
    return list(dict.fromkeys((*quoted, *runs)))


def _all(screen: Observation, texts: Sequence[str]) -> Iterator[Action]:
    offered = screen.actions or ACTION_TYPES
    for element in screen.elements:
        if element.enabled:
            yield from _on(element, texts, offered, bool(screen.actions))
    if "scroll" in offered:
        for direction in _SCROLLS:
            yield Action(action_type="scroll", direction=direction)
    for kind in _PLAIN:
        if kind in offered:
            yield Action(action_type=kind)
    if "answer" in offered:
        for text in texts:
            yield Action(action_type="answer", text=text)
    if "status" in offered:
        for status in _STATUSES:
            yield Action(action_type="status", goal_status=status)


def _on(
    element: Element, texts: Sequence[str], offered: Sequence[str], explicit: bool
) -> Iterator[Action]:
    """Actions on one element; ``double_tap`` and ``long_press`` only if the screen lists them."""
    index, label = element.index, element.label or None
    if element.clickable and "click" in offered:
        yield Action(action_type="click", target=label, index=index)
    for kind in _TAPS:
        if element.clickable and explicit and kind in offered:
            yield Action(action_type=kind, target=label, index=index)
    if element.editable and "input_text" in offered:
        for text in texts:
            yield Action(action_type="input_text", target=label, index=index, text=text)
    if element.role == "field" and not element.editable and "select" in offered:
        for text in texts:
            yield Action(action_type="select", target=label, index=index, text=text)


def marked(png: bytes, elements: Sequence[Element]) -> bytes:
    """The picture, with a box and an index drawn on every element that it shows.

    Args:
        png: a PNG file, in the pixels of the elements' bounds.
    """
    from PIL import Image, ImageDraw, ImageFont

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        picture = image.convert("RGB")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(8)
    for element in elements:
        left, top, right, bottom = element.bounds or (0, 0, 0, 0)
        if right <= max(left, 0) or bottom <= max(top, 0):
            continue
        if left >= picture.width or top >= picture.height:
            continue
        colour = _COLOURS[element.index % len(_COLOURS)]
        pen.rectangle((left, top, right - 1, bottom - 1), outline=colour)
        label = str(element.index)
        width, height = (round(edge) for edge in pen.textbbox((0, 0), label, font)[2:])
        # Beside the box where there is room, so that the number covers no text of the element.
        x = left - width - 1 if left > width else min(max(left, 0), picture.width - width)
        at = x, min(max(top, 0), picture.height - height)
        pen.rectangle((*at, at[0] + width, at[1] + height), fill=colour)
        pen.text(at, label, "white", font)
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()
