"""The actions that a screen offers as a list, for random walks and for actions by number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.prompts.possible_actions import OPEN, possible_actions

_WORD = re.compile(r"\w(?:[\w@.,:/'-]*\w)?")
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


def _all(screen: Observation, texts: Sequence[str]) -> Iterator[Action]:
    for action in possible_actions(Decision(observation=screen)):
        if not isinstance(action, Action) or action.app_name is not None:
            continue
        if action.text == OPEN:
            yield from (replace(action, text=text) for text in texts)
            continue
        element = screen.element(action.index)
        if element is None or element.clickable:
            yield action


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
