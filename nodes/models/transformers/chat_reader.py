"""Converts chats to tokens with a tokenizer's chat template, and neutralises control tokens.

No weights are needed: if a server answers for a model, other processes get its
:class:`ChatReader`, which makes the same prompts.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.prompts import as_chat, format_named, shortened

_LIKE_A_MARK = re.compile(r"<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]")
_PLAIN = (
    "{{ bos_token }}{% for m in messages %}{{ m.role | capitalize }}: {{ m.content }}"
    "{{ '\\n\\n' }}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""The chat template of a tokenizer that has none."""
_HEADING = r"^(?=\\*(?:system|user|assistant):)"


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

    def told(self) -> dict[str, Any]:
        """What a completion says of its prompt."""
        decision = self.decision
        return {
            "prompt": self.text,
            "prompt_format": "json" if decision is None else self.prompt_format,
            "dropped": None if decision is None else decision.dropped,
        }


@dataclass(frozen=True, kw_only=True)
class ChatReader:
    """Turns requests into prompts for one tokenizer, without weights; it can be sent to other
    processes."""

    tokenizer: Any
    """A tokenizer of transformers. One without a chat template gets a plain one."""
    name: str
    """Name of the model, for error messages."""
    context: int | None = None
    """Maximum number of tokens of prompt and reply together; ``None``: not known."""
    prompt_tokens: int | None = None
    """Maximum number of tokens of a decision's prompt; ``None``: the rest of the context.
    Raises ``ConfigError`` if it is not positive."""
    content: Any = "x"
    """An example of the content of a turn, in the form that the chat template reads."""
    marks: re.Pattern[str] = field(init=False)
    """Finds control tokens in a text."""
    _takes_system: bool = field(init=False)

    def __post_init__(self) -> None:
        if self.prompt_tokens is not None and self.prompt_tokens < 1:
            raise ConfigError(f"prompt_tokens must be >= 1, got {self.prompt_tokens}")
        if self.tokenizer.chat_template is None:
            self.tokenizer.chat_template = _PLAIN
        shown = _accepted(self.tokenizer, self.content)
        takes_system = ("system", "user") in shown or ("user",) not in shown
        object.__setattr__(self, "_takes_system", takes_system)
        object.__setattr__(self, "marks", _control_marks(self.tokenizer, "\n".join(shown.values())))

    def read(self, request: Request, prompt_format: str) -> ChatPrompt:
        """The prompt of a request. The prompt of a decision is shortened if it is too long. Raises
        ``ModelError`` if the model cannot answer the request, or a chat is too long."""
        decision, written = request.decision, partial(self.written, prompt_format)
        if decision is None or request.chat is not None:
            read = self.prompt(as_chat(request, written))
            if self.context is not None and len(read.ids) >= self.context:
                raise ModelError(
                    f"the prompt has {len(read.ids)} tokens; '{self.name}' accepts at most "
                    f"{self.context}, its reply included"
                )
        else:
            room = self._room(request, again=decision.dropped is not None)
            decision, read = shortened(
                decision, room, lambda d: self.prompt(written(d)), lambda p: len(p.ids)
            )
        return replace(read, prompt_format=prompt_format, decision=decision)

    def written(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        """A decision as a chat."""
        return format_named(prompt_format).chat(decision)

    def prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        """The prompt of a chat of texts. Raises ``ModelError`` if it has images, or the chat
        template refuses it."""
        if any(turn.images for turn in chat):
            raise ModelError(
                f"'{self.name}' reads text only, and the chat has images; "
                "use a model that can see: VisionModel, or an OpenAI-compatible one"
            )
        turns = self.harmless(chat)
        text = self.templated([(turn.role, turn.content) for turn in turns])
        return ChatPrompt(self.tokens(text), text, turns=turns)

    def harmless(self, chat: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """The turns as the chat template accepts them: without marks that would end a turn or begin
        another, and with the system turn at the beginning of the user's turn if the template
        refuses system turns (Gemma)."""
        if not self._takes_system and [turn.role for turn in chat[:2]] == ["system", "user"]:
            system, user, *rest = chat
            content = f"{system.content}\n\n{user.content}"
            chat = [msgspec.structs.replace(user, content=content), *rest]
        return tuple(
            ChatMessage(turn.role, self.marks.sub(_broken, turn.content), turn.images)
            for turn in chat
        )

    def templated(self, turns: Sequence[tuple[str, Any]]) -> str:
        """The turns (role, content) in the chat template. Raises ``ModelError`` if the template
        refuses them."""
        try:
            return _templated(self.tokenizer, turns)
        except Exception as error:  # a template is a program that may raise anything
            raise ModelError(
                f"the chat template of '{self.name}' refuses this chat "
                f"({', '.join(role for role, _ in turns)}): {error}"
            ) from error

    def tokens(self, text: str, *, literal: bool = False) -> list[int]:
        """The tokens of a text. With ``literal``, special tokens are read as plain text."""
        options = {"split_special_tokens": True} if literal else {}
        return list(self.tokenizer(text, add_special_tokens=False, **options)["input_ids"])

    def _room(self, request: Request, *, again: bool) -> int:
        """The maximum number of tokens that the prompt of this decision may have. ``again``: it was
        shortened before."""
        limits = [sys.maxsize] if self.prompt_tokens is None else [self.prompt_tokens]
        if self.context is not None:
            room = max(self.context - request.reply_tokens, self.context // 2)
            limits.append(self.context - 1 if again or self.prompt_tokens is not None else room)
        return min(limits)


def _templated(tokenizer: Any, turns: Sequence[tuple[str, Any]]) -> str:
    chat = [{"role": role, "content": content} for role, content in turns]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def _accepted(tokenizer: Any, content: Any) -> dict[tuple[str, ...], str]:
    """The text of chats with this content in every turn, by their roles, if the chat template
    accepts them."""
    shown = {}
    for roles in (("user",), ("user", "assistant", "user")):
        for chat in (roles, ("system", *roles)):
            # A template is a program that may raise anything.
            with contextlib.suppress(Exception):
                shown[chat] = _templated(tokenizer, [(role, content) for role in chat])
    return shown


def _control_marks(tokenizer: Any, shown: str) -> re.Pattern[str]:
    """Finds the control tokens of a tokenizer, and what its chat template shows around turns."""
    added = tokenizer.added_tokens_decoder.values()
    marks = {t.content for t in added if t.special or _LIKE_A_MARK.fullmatch(t.content)}
    marks.update(_LIKE_A_MARK.findall(shown))
    listed = sorted((mark for mark in marks if mark.strip()), key=len, reverse=True)
    parts = [_HEADING] * (tokenizer.chat_template == _PLAIN) + [*map(re.escape, listed)]
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE | re.MULTILINE)


def _broken(mark: re.Match[str]) -> str:
    """A mark as harmless text; the beginning of a heading gets a backslash."""
    text = mark[0]
    if not text:
        return "\\"
    return f"‹{text[1:]}" if text[0] == "<" else f"{text[0]} {text[1:]}"
