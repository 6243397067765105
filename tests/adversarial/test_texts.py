"""What a model or a page says is read as data, at a cost that grows with its length.

Counted are the lines of this library that are executed; objects are decoded by the standard
library, so the time of the longest texts is bounded too.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_ui import json_text
from swarm_ui.action import (
    ACTION_TYPES,
    Abstain,
    Action,
    Unparsed,
    parse_action,
    parse_reply,
)
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.prompts import (
    LONGEST_LABEL,
    chat_of,
    context,
    decision_chat,
    said,
    transcript,
    utterance,
)

FEW = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
WAIT = '{"action_type":"wait"}'
FIELDS = (*Action.__struct_fields__, "why", "", "action type")
VALUES = (
    "0", "-1", "7", "1e400", "-1e400", "NaN", "Infinity", "9" * 25, "9" * 5000, "1.0", "1.5",
    "2147483648", "01", "-", "1e", '"3"', '"٣"', "true", "null", "[]", "{}", '"\\ud83d"',
    '"\\u0000"', '"\x00"', '"a"', '"\\\\"', '"up"', '"complete"',
    *map(json.dumps, (*ACTION_TYPES, "pass", "fly")),
)  # fmt: skip
ATOMS = (
    " ", "\n", "{", "[", '{"', '{"a":', '{"a":[', '{"a":1,', '"', "\\", '\\"', "```", "```json ",
    "Action:", "<", "< ", "</", "</sai", "<\u200b", "<s\u200b", "1", "-", "9.", "{ ", '{"a":"{',
    "[user]", "\n\n[user]", "\n\\", "e\u0301", "\U0001f600", "}", "]", ",", ":", "\ufeff", "\u2028",
    "\x00",
)  # fmt: skip
TAGS = (
    "<screen>", "</screen>", "</ SAID >", "<\u200b/said>", "</hi\u2060story>", "\uff1c/",
    "</scr\u00adeen>", "screen>", "said", "/", "\r", "\x85", "\n\n[user]\n", "\\[system]",
    ", picture 1x1 (9 bytes, 0123456789ab)]", "5: button ", "\u3164", *ATOMS,
)  # fmt: skip

pairs = st.tuples(
    st.sampled_from(FIELDS).map(json.dumps),
    st.text(max_size=6).map(json.dumps) | st.sampled_from(VALUES),
).map(":".join)
records = st.lists(pairs, max_size=5).map(lambda each: "{" + ",".join(each) + "}")
kinds = st.sampled_from(ACTION_TYPES).map(lambda kind: f'{{"action_type":"{kind}",')
parts = records | st.sampled_from(ATOMS) | kinds | st.text(max_size=4) | pairs
words = st.lists(st.sampled_from(TAGS) | st.text(max_size=5), max_size=5).map("".join)


# -- as data --------------------------------------------------------------------------------------


def reference(text: str) -> list[tuple[str, int, int]]:
    """The objects of a text, found by trying each brace."""
    found, at = [], text.find("{")
    while at != -1:
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            at = text.find("{", at + 1)
            continue
        found.append((repr(value), at, end))
        at = text.find("{", end)
    return found


@FEW
@given(st.lists(parts, max_size=8).map("".join))
@example('{"action_type":"click","index":1,"x":{"action_type":"wait"}}')
def test_the_parser_reads_anything(reply: str) -> None:
    assert [(repr(f.value), f.start, f.end) for f in json_text.objects(reply)] == reference(reply)
    parsed = parse_reply(reply)
    if not isinstance(parsed, Action):
        assert isinstance(parsed, Abstain | Unparsed)
        return
    assert parse_reply(parsed.json()) == parsed
    assert msgspec.json.decode(msgspec.json.encode(parsed), type=Action) == parsed
    assert hash(parsed.key) is not None and str(parsed)
    assert parse_reply(utterance(reply, parsed)) == parsed


elements = st.builds(
    Element, index=st.just(0), role=st.sampled_from(("button", "field")), text=words,
    description=words, hint=words, value=st.none() | words,
)  # fmt: skip
actions = st.none() | st.builds(Action, action_type=st.just("answer"), text=words, target=words)
heards = st.builds(
    Heard, sender=words, round=st.just(0), content=words, action=actions, own=st.booleans()
)
pasts = st.builds(Past, action=st.just(Action(action_type="wait")), role=words, label=words)


@FEW
@given(
    st.lists(elements, max_size=3), st.lists(heards, max_size=2), st.lists(pasts, max_size=2), words
)
def test_the_renderer_quotes_anything(
    shown: list[Element], heard: list[Heard], past: list[Past], app: str
) -> None:
    listed = tuple(msgspec.structs.replace(e, index=k) for k, e in enumerate(shown))
    screen = Observation(goal="g", elements=listed, app=app, history=tuple(past))
    chat = decision_chat(Decision(observation=screen, heard=tuple(heard)))
    assert chat_of(transcript(chat)) == chat
    seen = "".join(c for c in chat[1].content if unicodedata.category(c) != "Cf" and c != "\u3164")
    seen = "".join(unicodedata.normalize("NFKC", seen).casefold().split(" "))
    for tag, count in (("screen", 1), ("history", 1), ("said", len(heard))):
        assert seen.count(f"<{tag}>") == seen.count(f"</{tag}>") == count, tag
    block = chat[1].content.partition("<screen>\n")[2].partition("\n</screen>")[0]
    assert len(block.splitlines()) == max(1, len(listed)) + bool(app)


@FEW
@given(st.lists(st.tuples(st.sampled_from(("system", "user", "assistant")), words), max_size=4))
def test_a_transcript_is_read_back(turns: list[tuple[str, str]]) -> None:
    chat = tuple(ChatMessage(role, text) for role, text in turns)  # type: ignore[arg-type]
    assert chat_of(transcript(chat)) == chat


# -- at a cost that grows with its length ---------------------------------------------------------


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
def test_operations_grow_with_the_length(read: Callable[[str], object]) -> None:
    for ending in ("", WAIT):
        for atom in ATOMS:
            few, many = (cost(read, atom * (size // len(atom)) + ending) for size in (500, 4_000))
            assert many <= 10 * few + 2_000, f"{atom!r}: {few} operations, then {many}"


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_the_longest_hostile_texts_take_little_time(read: Callable[[str], object]) -> None:
    started = process_time()
    for atom in (*ATOMS, '{"a":{"b":1},', '{"a":[{"b":[', '{"a":"\\u0041"'):
        read(atom * (json_text.LONGEST // len(atom)))
    assert process_time() - started < 5


def test_long_texts_are_cut_or_refused() -> None:
    reply = "Reason: x" + " " * 60_000 + WAIT
    assert utterance(reply, Action(action_type="wait")) == f"Reason: x\nAction: {WAIT}"
    parsed = parse_action("x" * 1_000_000 + WAIT)
    assert isinstance(parsed, Unparsed) and "at most" in parsed.reason
    page = shown("a" * 1_000_000)
    assert "are left out" in page and '"' + "a" * 10 in page
    assert len(said("ada", "b" * 1_000_000, None)) < LONGEST_LABEL + 200
