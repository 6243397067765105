"""Reading what a model or a page says costs a number of operations that grows with its length.

Counted are the lines of this library that are executed; objects are decoded by the standard
library, so the time of the longest texts is bounded too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import json_text
from swarm_ui.action import Action, Unparsed, parse_action, parse_reply
from swarm_ui.model import ChatMessage
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import LONGEST_LABEL, context, said, transcript, utterance

WAIT = '{"action_type":"wait"}'
ATOMS = (
    " ", "\n", "{", "[", '{"', '{"a":', '{"a":[', '{"a":1,', '"', "\\", '\\"', "```", "```json ",
    "Action:", "<", "< ", "</", "</sai", "<\u200b", "<s\u200b", "1", "-", "9.", "{ ", '{"a":"{',
    "[user]", "\n\n[user]", "\n\\", "e\u0301", "\U0001f600",
)  # fmt: skip


@contextmanager
def operations() -> Iterator[list[int]]:
    """Counts the lines of the library that run inside; the result is in the list afterwards."""
    count = [0]

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        count[0] += 1
        return trace if "swarm_ui" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def cost(read: Callable[[str], object], text: str) -> int:
    with operations() as count:
        read(text)
    return count[0]


def shown(text: str) -> str:
    element = Element(index=0, role="button", text=text)
    return context(Observation(goal=text, elements=(element,), app=text))


READERS: dict[str, Callable[[str], object]] = {
    "action": parse_action,
    "pass": parse_reply,
    "objects": lambda text: list(json_text.objects(text)),
    "utterance": lambda text: utterance(text, None),
    "said": lambda text: said("ada", text, Action(action_type="wait")),
    "screen": shown,
    "transcript": lambda text: transcript([ChatMessage("user", text)]),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("ending", ["", WAIT])
def test_operations_grow_with_the_length(read: Callable[[str], object], ending: str) -> None:
    for atom in ATOMS:
        few, many = (cost(read, atom * (size // len(atom)) + ending) for size in (500, 4_000))
        assert many <= 10 * few + 2_000, f"{atom!r}: {few} operations, then {many}"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=6), st.sampled_from(sorted(READERS)))
def test_operations_grow_with_the_length_of_mixtures(atoms: list[str], reader: str) -> None:
    mixed = "".join(atoms)
    for text in (mixed * (2_000 // len(mixed)), "".join(a * (2_000 // len(a)) for a in atoms)):
        assert cost(READERS[reader], text) <= 40 * len(text) + 2_000


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_the_longest_hostile_texts_take_little_time(read: Callable[[str], object]) -> None:
    started = process_time()
    for atom in (*ATOMS, '{"a":{"b":1},', '{"a":[{"b":[', '{"a":"\\u0041"'):
        read(atom * (json_text.LONGEST // len(atom)))
    assert process_time() - started < 5


def test_spaces_before_an_action_are_no_work() -> None:
    reply = "Reason: x" + " " * 60_000 + WAIT
    assert utterance(reply, Action(action_type="wait")) == f"Reason: x\nAction: {WAIT}"


def test_a_reply_of_a_million_characters_is_a_failure_of_the_model() -> None:
    parsed = parse_action("x" * 1_000_000 + WAIT)
    assert isinstance(parsed, Unparsed) and "at most" in parsed.reason


def test_long_texts_are_cut_in_prompts() -> None:
    page = shown("a" * 1_000_000)
    assert "are left out" in page and '"' + "a" * 10 in page
    assert len(said("ada", "b" * 1_000_000, None)) < LONGEST_LABEL + 200
