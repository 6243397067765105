"""Chats as one text, with pictures and schemas."""

from __future__ import annotations

from swarm_ui.model import ChatMessage
from swarm_ui.prompts import chat_of, transcript, with_picture, with_schema


def png(width: int, height: int, rest: bytes = b"") -> bytes:
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + size + rest


def test_a_transcript_names_pictures_by_size_and_digest_and_gets_them_back() -> None:
    first, second = png(1080, 2400), png(1080, 2400, b"other")
    chat = with_picture(with_picture((ChatMessage("user", "which?"),), first), second)
    assert chat == (ChatMessage("user", "which?", (first, second)),)
    text = transcript(chat)
    assert len(text) < 150 and text.count(", picture 1080x2400 (") == 2
    assert transcript((ChatMessage("user", "which?", (second, first)),)) != text
    assert [turn.content for turn in chat_of(text)] == [turn.content for turn in chat]


def test_a_schema_in_words_stands_at_the_end_of_what_the_user_says() -> None:
    system, user = ChatMessage("system", "s"), ChatMessage("user", "u")
    asked = with_schema((system, user), '{"type": "object"}')
    assert asked[0] == system and len(asked) == 2
    assert asked[1].content.startswith("u\n\nReply with one JSON value")
    assert asked[1].content.endswith('{"type": "object"}')
    more = with_schema((user, ChatMessage("assistant", "a")), "{}")
    assert [turn.role for turn in more] == ["user", "assistant", "user"]
    assert with_schema((), "{}")[0].content.startswith("Reply with")
