"""Chats as one text, as traces keep them, and pictures and schemas in chats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from swarm_ui.errors import ModelError, TraceError
from swarm_ui.model import ChatMessage, ToolSpec
from swarm_ui.prompts.tool_calls import written_calls

_MARK = (
    r"\[(?P<role>system|user|assistant|tools|tool(?: (?P<answers>[A-Za-z0-9_.:-]{1,64}))?)"
    r"(?P<pictures>(?:, picture [0-9]+x[0-9]+ \([0-9]+ bytes, [0-9a-f]{12}\))*)\]"
)
_HEADING = re.compile(rf"(?:\A|\n\n){_MARK}\n")
_HEADING_LINE = re.compile(rf"^\\*{_MARK}$", re.MULTILINE)
_ESCAPED_LINE = re.compile(rf"^\\(\\*{_MARK})$", re.MULTILINE)


def with_picture(chat: Sequence[ChatMessage], png: bytes) -> tuple[ChatMessage, ...]:
    """The chat with a picture in its last user turn, for models that accept images."""
    for k in reversed(range(len(chat))):
        if chat[k].role == "user":
            turn = msgspec.structs.replace(chat[k], images=(*chat[k].images, png))
            return (*chat[:k], turn, *chat[k + 1 :])
    return (*chat, ChatMessage("user", "", (png,)))


def with_schema(chat: Sequence[ChatMessage], schema: str) -> tuple[ChatMessage, ...]:
    """The chat with a JSON schema in its text, for models without constrained decoding. A chat that
    has it already is returned unchanged."""
    asked = f"Reply with one JSON value that follows this JSON schema, and nothing else:\n{schema}"
    if any(asked in turn.content for turn in chat):
        return tuple(chat)
    if not chat or chat[-1].role != "user":
        return (*chat, ChatMessage("user", asked))
    before = f"{chat[-1].content}\n\n" if chat[-1].content else ""
    last = msgspec.structs.replace(chat[-1], content=before + asked)
    return (*chat[:-1], last)


def transcript(chat: Sequence[ChatMessage], tools: Sequence[ToolSpec] = ()) -> str:
    """A chat as one text: the exact prompt, as traces keep it; :func:`chat_of` reads it back.

    A picture is named by its size and the beginning of its SHA-256. A line that looks
    like the heading of a turn gets a backslash in front, so no text can imitate a turn.

    Calls of tools are written as :func:`~.tool_calls.written_calls` does. ``tools``, which the
    model was offered through its own interface, come first.

    >>> print(transcript([ChatMessage("user", "Which?"), ChatMessage("assistant", "This.")]))
    [user]
    Which?
    <BLANKLINE>
    [assistant]
    This.
    """
    offered = [[t.name, t.description, msgspec.Raw(t.parameters.encode())] for t in tools]
    lines = ["[tools]", *(msgspec.json.encode(tool).decode() for tool in offered)]
    return "\n\n".join([*(["\n".join(lines)] if tools else []), *map(_written, chat)])


def _written(turn: ChatMessage) -> str:
    heading = turn.role + (f" {turn.answers}" if turn.answers else "")
    content = written_calls(turn.content, turn.calls) if turn.calls else turn.content
    pictures = "".join(f", {picture_name(png)}" for png in turn.images)
    return f"[{heading}{pictures}]\n" + _HEADING_LINE.sub(r"\\\g<0>", content)


def chat_of(text: str) -> tuple[ChatMessage, ...]:
    """The turns of a :func:`transcript`, for other programs. Its pictures and tools are left out;
    calls of tools stay text. Raises ``TraceError`` if the text is not a transcript."""
    headings = list(_HEADING.finditer(text))
    if text and (not headings or headings[0].start()):
        raise TraceError(
            "not the transcript of a chat: expected it to begin with a line such as '[user]', "
            f"got {text[:40]!r}"
        )
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    turns: list[ChatMessage] = []
    for heading, end in zip(headings, ends, strict=False):
        role: Any = heading["role"].partition(" ")[0]
        if role != "tools":
            content = _ESCAPED_LINE.sub(r"\1", text[heading.end() : end])
            turns.append(ChatMessage(role, content, answers=heading["answers"] or ""))
    return tuple(turns)


def picture_size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels. Raises ``ModelError`` if it is not a PNG file."""
    if png[:8] != b"\x89PNG\r\n\x1a\n" or png[12:16] != b"IHDR" or len(png) < 24:
        raise ModelError(
            f"a picture for a model must be a PNG file, got {len(png)} bytes that begin with "
            f"{png[:8]!r}. Convert it first"
        )
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def picture_name(png: bytes) -> str:
    """The placeholder of a picture in a text. Raises ``ModelError`` if it is not a PNG file."""
    width, height = picture_size(png)
    return f"picture {width}x{height} ({len(png)} bytes, {sha256(png).hexdigest()[:12]})"
