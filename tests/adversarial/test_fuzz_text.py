"""Fuzzing of the action parser and of the chat renderer."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from swarm_ui.action import ACTION_TYPES, Abstain, Action, Unparsed, parse_reply, unfit
from swarm_ui.json_text import objects
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.prompts import chat_of, decision_chat, transcript, utterance

FEW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIELDS = (*Action.__struct_fields__, "why", "", "action type")

NUMBERS = (
    "0", "-1", "7", "1e400", "-1e400", "NaN", "Infinity", "9" * 25, "9" * 5000, "1.0", "1.5",
    "2147483648", "01", "-", "1e", '"3"', '"٣"', "true", "null", "[]", "{}",
)  # fmt: skip
TEXTS = ('"\\ud83d"', '"\\u0000"', '"\x00"', '"a"', '"\\\\"', '"up"', '"complete"')
KINDS = tuple(json.dumps(kind) for kind in (*ACTION_TYPES, "pass", "fly"))
ATOMS = (
    "{", "}", "[", "]", '"', "\\", ",", ":", " ", "\n", "```json", "```", "Action:", "Reason: ",
    '{"a":', '{"index":', "\ufeff", "\u2028", "\x00", "<said>",
)  # fmt: skip
TAGS = (
    "<", "</", "<screen>", "</screen>", "</ SAID >", "<\u200b/said>", "</hi\u2060story>",
    "\uff1c/", "</scr\u00adeen>", "screen>", "said", "/", "\n", "\r", "\u2028", "\x85", "[user]",
    "\n\n[user]\n", "\\", "\\[system]", ", picture 1x1 (9 bytes, 0123456789ab)]", '"',
    "5: button ", "\u3164", " ",
)  # fmt: skip

values = st.text(max_size=6).map(json.dumps) | st.sampled_from((*NUMBERS, *TEXTS, *KINDS))
pairs = st.tuples(st.sampled_from(FIELDS).map(json.dumps), values).map(":".join)
records = st.lists(pairs, max_size=5).map(lambda each: "{" + ",".join(each) + "}")
kinds = st.sampled_from(KINDS).map(lambda kind: f'{{"action_type":{kind},')
atoms = st.sampled_from(ATOMS)
parts = records | atoms | kinds | st.text(max_size=4) | pairs
replies = st.lists(parts, max_size=8).map("".join)


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


def check_parser(reply: str) -> None:
    assert [(repr(f.value), f.start, f.end) for f in objects(reply)] == reference(reply)
    parsed = parse_reply(reply)
    if isinstance(parsed, Action):
        assert unfit(parsed) is None
        assert parse_reply(parsed.json()) == parsed
        assert msgspec.json.decode(msgspec.json.encode(parsed), type=Action) == parsed
        assert hash(parsed.key) is not None and str(parsed)
        assert parse_reply(utterance(reply, parsed)) == parsed
    else:
        assert isinstance(parsed, Abstain | Unparsed)
    assert math.isfinite(len(utterance(reply, None)))


tags = st.sampled_from(TAGS)
words = st.lists(tags | st.text(max_size=5), max_size=5).map("".join)
elements = st.lists(
    st.builds(
        Element, index=st.just(0), role=st.sampled_from(("button", "field")), text=words,
        description=words, hint=words, value=st.none() | words,
    ),
    max_size=3,
)  # fmt: skip
actions = st.none() | st.builds(Action, action_type=st.just("answer"), text=words, target=words)
heards = st.lists(
    st.builds(
        Heard, sender=words, round=st.just(0), content=words, action=actions, own=st.booleans()
    ),
    max_size=2,
)
pasts = st.lists(
    st.builds(Past, action=st.just(Action(action_type="wait")), role=words, label=words), max_size=2
)


def check_renderer(
    shown: Sequence[Element], heard: list[Heard], past: list[Past], app: str
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


rendered = given(elements, heards, pasts, words)


@FEW
@given(replies)
@example('{"action_type":"click","index":1,"x":{"action_type":"wait"}}')
def test_the_parser_reads_anything(reply: str) -> None:
    check_parser(reply)


@FEW
@rendered
def test_the_renderer_quotes_anything(
    shown: list[Element], heard: list[Heard], past: list[Past], app: str
) -> None:
    check_renderer(shown, heard, past, app)


@FEW
@given(st.lists(st.tuples(st.sampled_from(("system", "user", "assistant")), words), max_size=4))
def test_a_transcript_is_read_back(turns: list[tuple[str, str]]) -> None:
    chat = tuple(ChatMessage(role, text) for role, text in turns)  # type: ignore[arg-type]
    assert chat_of(transcript(chat)) == chat
