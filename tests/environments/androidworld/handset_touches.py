"""Touches of a handset by the texts on its screen."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import lay_out
from swarm_ui.environments.androidworld.handset.screen.touch import tap, type_text


def place(handset: Handset, label: str) -> tuple[float, float]:
    """The middle of what is called so, in Android's pixels."""
    for one in lay_out(handset).placed:
        if label in (one.widget.text, one.widget.description, one.widget.value):
            left, top, right, bottom = one.pixels
            return (left + right) / 2, (top + bottom) / 2
    raise AssertionError(f"{label!r} is not on the screen: {seen(handset)}")


def seen(handset: Handset) -> list[str]:
    return [one.widget.text or one.widget.description for one in lay_out(handset).placed]


def touch(handset: Handset, *labels: str) -> None:
    for label in labels:
        tap(handset, *place(handset, label))


def write(handset: Handset, hint: str, text: str) -> None:
    touch(handset, hint)
    type_text(handset, text)
