"""Quoting of text from outside, so that it cannot close a block of a prompt or imitate a line."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from swarm_ui.observation import Element, Observation

LONGEST_LABEL = 10_000
"""Maximum number of characters of an element's text or a message in a prompt; the rest is cut."""

_TEXTS = ("text", "description", "hint", "value")
_OPENING = re.compile("[<\ufe64\uff1c]")
_BLOCKS = ("screen", "history", "said", "result")
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
        (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
        (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
)  # fmt: skip
"""Characters without width, which can hide inside of a tag."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line_each(observation: Observation) -> Observation:
    """Labels without line breaks, so that no label can imitate another element."""
    return msgspec.structs.replace(
        observation, elements=tuple(_one_line(element) for element in observation.elements)
    )


def _one_line(element: Element) -> Element:
    texts = {name: getattr(element, name) or "" for name in _TEXTS}
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
    pieces, done = [], 0
    for opening in _OPENING.finditer(text):
        if _tag_follows(text, opening.end()):
            pieces += [text[done : opening.start()], "‹"]
            done = opening.end()
    return "".join([*pieces, text[done:]])


def _tag_follows(text: str, at: int) -> bool:
    """Whether the name of a block follows, after spaces, a slash and invisible characters."""
    letters, slashes, longest = "", 0, max(map(len, _BLOCKS))
    for k in range(at, len(text)):
        letter = text[k]
        if letter in _INVISIBLE or (not letters and letter.isspace()):
            continue
        if letter in "/\u2044\u2215\uff0f" and not letters and not slashes:
            slashes = 1
        elif not (letter.isalnum() or letter == "_") or len(letters) > longest:
            break
        else:
            letters += unicodedata.normalize("NFKC", letter).casefold()
    return letters in _BLOCKS
