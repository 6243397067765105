"""Turns requests to a language model into prompts, without its weights.

The process of a model uses :func:`read_request`. If a server answers for the model, other processes
get a :class:`PromptReader`, which makes the same prompts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt, ChatTokens
from swarm_ui.prompts import as_chat, format_named, shortened


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """The maximum length of a model's prompts, in tokens."""

    name: str
    """Name of the model, for error messages."""
    context: int | None
    """Maximum number of tokens of prompt and reply together; ``None``: not known."""
    prompt_tokens: int | None
    """Maximum number of tokens of a decision's prompt; ``None``: the rest of the context."""

    def of(self, request: Request) -> int:
        """The maximum number of tokens that the prompt of this request may have."""
        limits = [sys.maxsize]
        if self.context is not None:
            again = request.decision is not None and request.decision.dropped is not None
            room = max(self.context - request.reply_tokens, self.context // 2)
            limits.append(self.context - 1 if again or self.prompt_tokens is not None else room)
        if self.prompt_tokens is not None:
            limits.append(self.prompt_tokens)
        return min(limits)


def read_request(
    request: Request,
    prompt_format: str,
    limits: PromptLimits,
    *,
    chat: Callable[[Decision], tuple[ChatMessage, ...]],
    prompt: Callable[[Sequence[ChatMessage]], ChatPrompt],
) -> ChatPrompt:
    """The prompt of a request. The prompt of a decision is shortened if it is too long.

    Args:
        request: a decision or a chat.
        prompt_format: the format in which decisions are written.
        limits: the limits of the model.
        chat: writes a decision as a chat.
        prompt: turns a chat into tokens.

    Raises:
        ModelError: the model cannot answer the request, or a chat is too long.
    """
    decision = request.decision
    if decision is None or request.chat is not None:
        read = prompt(as_chat(request, chat))
        if limits.context is not None and len(read.ids) >= limits.context:
            raise ModelError(
                f"the prompt has {len(read.ids)} tokens; '{limits.name}' accepts at most "
                f"{limits.context}, its reply included"
            )
    else:
        decision, read = shortened(decision, limits.of(request), chat, prompt, _length)
    return replace(read, prompt_format=prompt_format, decision=decision)


def text_prompt(chats: ChatTokens, name: str, chat: Sequence[ChatMessage]) -> ChatPrompt:
    """The prompt of a chat of texts. Raises ``ModelError`` if it has images."""
    if any(turn.images for turn in chat):
        raise ModelError(
            f"'{name}' reads text only, and the chat has images; "
            "use a model that can see: VisionModel, or an OpenAI-compatible one"
        )
    return chats.prompt(chat)


@dataclass(frozen=True, slots=True)
class PromptReader:
    """Makes the prompts of a language model in any process; it can be sent there."""

    chats: ChatTokens
    limits: PromptLimits
    formats: Mapping[str | None, str]
    """Prompt format of the published versions; ``None``: of the base model."""

    def prompt(self, request: Request) -> ChatPrompt:
        """The prompt of a request for a published version or the base model. Raises
        ``ModelError`` if the model cannot answer it."""
        if request.adapter not in self.formats:
            known = ", ".join(version for version in self.formats if version) or "none"
            raise ModelError(f"no adapter '{request.adapter}' is published; there are: {known}")
        form = self.formats[request.adapter]
        return read_request(
            request, form, self.limits,
            chat=format_named(form).chat,
            prompt=partial(text_prompt, self.chats, self.limits.name),
        )  # fmt: skip


def _length(prompt: ChatPrompt) -> int:
    return len(prompt.ids)
