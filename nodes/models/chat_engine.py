"""An engine that answers chats with adapters which are trained elsewhere, such as a vLLM server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from swarm_ui.model import ChatMessage, Completion, Request
from swarm_ui.nodes.models.reply_patterns import reply_pattern
from swarm_ui.prompts import format_named

if TYPE_CHECKING:
    from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt


class Engine(Protocol):
    """Answers chats with versions of adapters that are loaded while it runs."""

    @property
    def name(self) -> str: ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]: ...

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version, such as ``"agent_2@7"``, from a folder in peft's format."""
        ...

    async def unload_version(self, version: str) -> None:
        """Remove a version; no error if it is not there."""
        ...

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the engine reads them."""
        ...

    async def close(self) -> None: ...


async def ask_engine(
    engine: Engine,
    requests: Sequence[Request],
    prompts: Sequence[ChatPrompt],
    *,
    constrained: bool | None,
) -> list[Completion]:
    """The replies of an engine to prompts that were made here.

    Args:
        engine: the engine, which has already loaded the versions.
        requests: each for an exact version of its adapter, or for the base model.
        prompts: the prompts of the requests, as the learner reads them.
        constrained: whether replies to decisions are restricted to the actions that are possible on
            the screen; ``None``: those in the compact format are.
    """
    asked = [
        msgspec.structs.replace(
            r,
            decision=None,
            chat=prompt.turns,
            # As the learner samples; the defaults of the engine may be others.
            temperature=r.temperature or 0.0,
            max_tokens=r.reply_tokens,
            tools=(),  # they are in the text of the chat, as the learner reads them
            pattern=decision_pattern(prompt, constrained) or r.pattern,
        )
        for r, prompt in zip(requests, prompts, strict=True)
    ]
    replies = await engine.generate(asked)
    return [
        msgspec.structs.replace(
            reply,
            prompt=prompt.text,
            adapter=request.adapter,
            model=engine.name,
            prompt_format="json" if prompt.decision is None else prompt.prompt_format,
            dropped=None if prompt.decision is None else prompt.decision.dropped,
        )
        for reply, prompt, request in zip(replies, prompts, requests, strict=True)
    ]


def decision_pattern(prompt: ChatPrompt, constrained: bool | None) -> str | None:
    """A pattern of the replies that the screen allows; ``None`` if replies are not restricted. For
    ``constrained`` see :func:`ask_engine`."""
    if constrained is None:
        constrained = prompt.prompt_format == "compact"
    if prompt.decision is None or not constrained:
        return None
    return reply_pattern(format_named(prompt.prompt_format).replies(prompt.decision))
