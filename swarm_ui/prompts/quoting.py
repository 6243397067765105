"""Quoting of text from outside, so that it cannot close a block of a prompt or imitate a line."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from swarm_ui.observation import Element, Observation

LONGEST_LABEL = 10_000
"""Maximum number of characters of an element's text or a message in a prompt; the rest is cut."""

_BLOCKS = ("screen", "history", "said", "result")
_HIDDEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
"""Characters without width, which can hide inside of a tag."""
_TAG = re.compile(
    rf"[<\ufe64\uff1c](?=[\s{_HIDDEN}]*+[/\u2044\u2215\uff0f]?[\s{_HIDDEN}]*+"
    rf"((?:\w[{_HIDDEN}]*+){{1,{max(map(len, _BLOCKS))}}})(?!\w))"
)
"""What looks like the opening of a tag, before a word that is short enough for one of ours."""
_GAP = re.compile(f"[{_HIDDEN}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line_each(observation: Observation) -> Observation:
    """Labels without line breaks, so that no label can imitate another element."""
    return msgspec.structs.replace(
        observation, elements=tuple(map(_one_line, observation.elements))
    )


def _one_line(element: Element) -> Element:
    texts = {
        name: getattr(element, name) or "" for name in ("text", "description", "hint", "value")
    }
    changed = {name: flat(text) for name, text in texts.items() if flat(text) != text}
    return msgspec.structs.replace(element, **changed) if changed else element


def flat(text: str) -> str:
    return _CONTROL.sub(" ", cut(text).replace("\n", "\\n"))


def cut(text: str) -> str:
    """The beginning and the end of a long text."""
    left_out = len(text) - LONGEST_LABEL
    if left_out <= 0:
        return text
    half = LONGEST_LABEL // 2
    return f"{text[:half]} (… {left_out} characters are left out …) {text[-half:]}"


def inside(text: str) -> str:
    """Text on one line that cannot close the block that contains it."""
    return without_tags(flat(text))


def without_tags(text: str) -> str:
    """The text, changed so that nothing in it looks like a tag of our blocks. Each character is
    read a bounded number of times."""
    return _TAG.sub(_opening, text)


def _opening(found: re.Match[str]) -> str:
    word = unicodedata.normalize("NFKC", _GAP.sub("", found[1])).casefold()
    return "‹" if word in _BLOCKS else found[0]
