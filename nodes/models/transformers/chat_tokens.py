"""Converts chats to tokens with a tokenizer's chat template, and neutralises control tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatMessage, Decision

_LIKE_A_MARK = re.compile(r"<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]")
_HEADING = re.compile(r"^\\*(?:system|user|assistant):", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A chat as tokens and as text."""

    ids: list[int]
    text: str
    turns: tuple[ChatMessage, ...] = ()
    """The turns as passed to the chat template, without control tokens."""
    prompt_format: str = "json"
    decision: Decision | None = None
    """The decision of the request; ``None``: the request was a chat."""


class ChatTokens:
    """Turns chats into prompts for one tokenizer, and texts into tokens."""

    def __init__(self, tokenizer: Any, name: str, content: Any = "x") -> None:
        """
        Args:
            tokenizer: a tokenizer of transformers, with or without a chat template.
            name: the model's name, for errors.
            content: an example of the content of a turn, in the form that the template reads.
        """
        self._tokenizer, self._name = tokenizer, name
        self.marks = _control_marks(tokenizer, content)
        """Finds control tokens in a text."""
        alone, after_system = [("user", content)], [("system", content), ("user", content)]
        self._takes_system = _accepts(tokenizer, after_system) or not _accepts(tokenizer, alone)

    def accepted(self, chat: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The chat as the template accepts it: with the system turn at the beginning of the user's
        turn, if the template refuses system turns (Gemma)."""
        if self._takes_system or [turn.role for turn in chat[:2]] != ["system", "user"]:
            return chat
        system, user, *rest = chat
        content = f"{system.content}\n\n{user.content}"
        return [msgspec.structs.replace(user, content=content), *rest]

    def prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        """The prompt of a chat of texts. Raises ``ModelError`` if the chat template refuses it."""
        turns = [(turn.role, self.unmarked(turn.content)) for turn in self.accepted(chat)]
        text = self.written(turns)
        shown = [ChatMessage(role=role, content=content) for role, content in turns]
        return ChatPrompt(self.tokens(text), text, turns=tuple(shown))

    def unmarked(self, text: str) -> str:
        """The content of a turn, without the marks that would end the turn or begin another."""
        return self.marks.sub(_broken, text)

    def written(self, turns: Sequence[tuple[str, Any]]) -> str:
        """The turns (role, content) in the chat template. Raises ``ModelError`` if the template
        refuses them."""
        tokenizer = self._tokenizer
        if tokenizer.chat_template is None:
            return (tokenizer.bos_token or "") + _plain(turns)
        try:
            return _templated(tokenizer, turns)
        except Exception as error:  # a template is a program that may raise anything
            raise ModelError(
                f"the chat template of '{self._name}' refuses this chat "
                f"({', '.join(role for role, _ in turns)}): {error}"
            ) from error

    def tokens(self, text: str, *, literal: bool = False) -> list[int]:
        """The tokens of a text. With ``literal``, special tokens are read as plain text."""
        options = {"split_special_tokens": True} if literal else {}
        return list(self._tokenizer(text, add_special_tokens=False, **options)["input_ids"])


def _plain(turns: Sequence[tuple[str, str]]) -> str:
    lines = [f"{role.capitalize()}: {_HEADING.sub(_escaped, content)}" for role, content in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _templated(tokenizer: Any, turns: Sequence[tuple[str, Any]]) -> str:
    chat = [{"role": role, "content": content} for role, content in turns]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def _accepts(tokenizer: Any, turns: Sequence[tuple[str, Any]]) -> bool:
    """Whether a tokenizer has a chat template that accepts these turns."""
    try:
        _templated(tokenizer, turns)
    except Exception:  # a template is a program that may raise anything
        return False
    return True


def _control_marks(tokenizer: Any, content: Any) -> re.Pattern[str]:
    """Finds the control tokens of a tokenizer, and the text that its chat template puts around
    turns with this content."""
    added = tokenizer.added_tokens_decoder.values()
    marks = {t.content for t in added if t.special or _LIKE_A_MARK.fullmatch(t.content)}
    if tokenizer.chat_template is not None:
        for roles in (("system", "user", "assistant", "user"), ("user", "assistant", "user")):
            try:
                shown = _templated(tokenizer, [(role, content) for role in roles])
            except Exception:  # it accepts no such chat, so it has no such marks
                continue
            marks.update(_LIKE_A_MARK.findall(shown))
    listed = sorted((mark for mark in marks if mark.strip()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, listed)) or r"(?!)", re.IGNORECASE)


def _broken(mark: re.Match[str]) -> str:
    """A mark as harmless text."""
    text = mark[0]
    return f"‹{text[1:]}" if text[0] == "<" else f"{text[0]} {text[1:]}"


def _escaped(heading: re.Match[str]) -> str:
    return f"\\{heading[0]}"
