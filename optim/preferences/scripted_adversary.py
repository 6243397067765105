"""An adversary without a model, which draws typical mistakes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import msgspec

from swarm_ui.action import Action, Direction
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.preferences.adversary import fits, with_label

_POINTING = ("click", "double_tap", "long_press", "select")
_TURNED: dict[Direction, Direction] = {
    "up": "down", "down": "up", "left": "right", "right": "left",
}  # fmt: skip
_CLOSE, _FAR = 6.0, 1.0
"""Weights of a similar element or text, and of stopping or going back. The values are ours."""


class ScriptedAdversary:
    """Draws a mistake for the same screen.

    The mistakes are: an element of the same role or with words of the goal, other words of the
    goal as text, the opposite direction, stopping too early, and going back.
    """

    name = "scripted adversary"

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        """See :class:`~swarm_ui.optim.preferences.adversary.Adversary`; always finds one."""
        observation = decision.observation
        weights: dict[Action, float] = {}
        for action, weight in mistakes(observation, good):
            if action.key != good.key and fits(action, observation):
                weights.setdefault(with_label(action, observation), weight)
        return random.Random(seed).choices(list(weights), list(weights.values()))[0]


def mistakes(observation: Observation, good: Action) -> Iterator[tuple[Action, float]]:
    """Wrong actions with weights. They may contain ``good`` and actions that do not fit the screen.

    All similar elements and texts together have one weight, regardless of their number.
    """
    close = [*_other_elements(observation, good), *_other_words(observation, good)]
    for action in close:
        yield action, _CLOSE / len(close)
    if good.direction is not None:
        turned = _TURNED[good.direction]
        yield msgspec.structs.replace(good, direction=turned), _CLOSE / 2
    yield Action(action_type="status", goal_status="complete"), _FAR
    yield Action(action_type="navigate_back"), _FAR


def _other_elements(observation: Observation, good: Action) -> Iterator[Action]:
    meant = observation.element(good.index)
    goal = _words(observation.goal)
    for element in observation.elements:
        if meant is not None and element.index == meant.index:
            continue
        alike = meant is not None and element.role == meant.role
        if not alike and not goal & _words(element.label):
            continue
        same_act = good.action_type in _POINTING and element.clickable
        if same_act or (good.action_type == "input_text" and element.editable):
            yield msgspec.structs.replace(good, index=element.index, x=None, y=None)
        elif element.clickable:
            yield Action(action_type="click", index=element.index)


def _other_words(observation: Observation, good: Action) -> Iterator[Action]:
    """The same action with another text from the goal or the screen."""
    if good.text is None:
        return
    right = _words(good.text)
    offered: list[str] = []
    if good.action_type == "input_text":
        offered = [w for w in re.findall(r"\w+", observation.goal) if w.casefold() not in right]
    elif good.action_type == "answer":
        offered = [_shown(e) for e in observation.elements if _shown(e)]
    for text in dict.fromkeys(offered):
        yield msgspec.structs.replace(good, text=text)


def _shown(element: Element) -> str:
    return element.value or element.label


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in re.findall(r"\w{2,}|\d", text))
