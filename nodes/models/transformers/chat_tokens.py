"""Converts chats to tokens with a tokenizer's chat template, and neutralises control tokens.

No weights are needed: if a server answers for a model, other processes get its
:class:`PromptReader`, which makes the same prompts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.prompts import as_chat, format_named, shortened

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
    shift: int = 0
    """Position of the first new token minus the number of tokens, where pictures are counted in
    another way."""


class ChatTokens:
    """Turns chats into prompts for one tokenizer, and texts into tokens."""

    def __init__(self, tokenizer: Any, name: str, content: Any = "x") -> None:
        """
        Args:
            tokenizer: a tokenizer of transformers, with or without a chat template.
            name: the model's name, for errors.
            content: an example of the content of a turn, in the form that the template reads.
        """
        self.tokenizer, self._name = tokenizer, name
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
        """The prompt of a chat of texts. Raises ``ModelError`` if it has images, or the chat
        template refuses it."""
        if any(turn.images for turn in chat):
            raise ModelError(
                f"'{self._name}' reads text only, and the chat has images; "
                "use a model that can see: VisionModel, or an OpenAI-compatible one"
            )
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
        tokenizer = self.tokenizer
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
        return list(self.tokenizer(text, add_special_tokens=False, **options)["input_ids"])


@dataclass(frozen=True, kw_only=True)
class PromptReader:
    """Makes the prompts of a language model, without its weights; it can be sent to other
    processes."""

    chats: ChatTokens
    name: str
    """Name of the model, for error messages."""
    context: int | None
    """Maximum number of tokens of prompt and reply together; ``None``: not known."""
    prompt_tokens: int | None
    """Maximum number of tokens of a decision's prompt; ``None``: the rest of the context.
    Raises ``ConfigError`` if it is not positive."""
    formats: Mapping[str | None, str] = field(default_factory=dict)
    """Prompt format of the published versions; ``None``: of the base model."""

    def __post_init__(self) -> None:
        if self.prompt_tokens is not None and self.prompt_tokens < 1:
            raise ConfigError(f"prompt_tokens must be >= 1, got {self.prompt_tokens}")

    def prompt(self, request: Request) -> ChatPrompt:
        """The prompt of a request for a published version or the base model. Raises
        ``ModelError`` if the model cannot answer it."""
        if request.adapter not in self.formats:
            known = ", ".join(version for version in self.formats if version) or "none"
            raise ModelError(f"no adapter '{request.adapter}' is published; there are: {known}")
        return self.read(request, self.formats[request.adapter])

    def read(self, request: Request, prompt_format: str) -> ChatPrompt:
        """The prompt of a request. The prompt of a decision is shortened if it is too long. Raises
        ``ModelError`` if the model cannot answer the request, or a chat is too long."""
        decision, written = request.decision, partial(self.written, prompt_format)
        if decision is None or request.chat is not None:
            read = self.tokens(as_chat(request, written))
            if self.context is not None and len(read.ids) >= self.context:
                raise ModelError(
                    f"the prompt has {len(read.ids)} tokens; '{self.name}' accepts at most "
                    f"{self.context}, its reply included"
                )
        else:
            room = self._room(request)
            decision, read = shortened(decision, room, written, self.tokens, _length)
        return replace(read, prompt_format=prompt_format, decision=decision)

    def written(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        """A decision as a chat."""
        return format_named(prompt_format).chat(decision)

    def tokens(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        """The prompt of a chat. Raises ``ModelError`` if the model cannot read it."""
        return self.chats.prompt(chat)

    def _room(self, request: Request) -> int:
        """The maximum number of tokens that the prompt of this decision may have."""
        limits = [sys.maxsize]
        if self.context is not None:
            again = request.decision is not None and request.decision.dropped is not None
            room = max(self.context - request.reply_tokens, self.context // 2)
            limits.append(self.context - 1 if again or self.prompt_tokens is not None else room)
        if self.prompt_tokens is not None:
            limits.append(self.prompt_tokens)
        return min(limits)


def _length(prompt: ChatPrompt) -> int:
    return len(prompt.ids)


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
