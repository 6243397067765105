"""The one seam to a language model.

A node hands a :class:`Request` to a :class:`ChatModel` and gets a :class:`Completion`. A request
about a screen carries a :class:`Decision`, the structured context of one agent in one round;
large models read it as chat text (:mod:`swarm_ui.prompts`), the embedded agent as compact tokens.
The completion always holds the exact prompt that was used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from swarm_ui.message import Heard, Usage
from swarm_ui.observation import Observation


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """All that one agent knows when it speaks: its view of the screen and what it heard."""

    observation: Observation
    """The screen in the agent's own view (own order of elements, own indices)."""
    heard: tuple[Heard, ...] = ()
    """Own last words first, then predecessors in edge order."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call to a model. Exactly one of ``decision`` and ``chat`` is set."""

    decision: Decision | None = None
    chat: tuple[ChatMessage, ...] | None = None
    adapter: str | None = None
    """Name of the LoRA adapter to answer with; ``None``: the base model."""
    temperature: float = 0.0
    """0 is greedy."""
    max_tokens: int = 256
    seed: int = 0
    """Seeds the sampling of this request alone, so that batching does not change its answer."""
    json_schema: str | None = None
    """JSON schema (as JSON text) the reply must follow, where the model supports it."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer."""

    text: str
    prompt: str
    """The exact prompt as the model read it, for the trace."""
    usage: Usage = Usage()
    logprob: float | None = None
    """Log-probability (nats) of the reply, summed over its tokens; ``None`` if unknown."""
    model: str = ""
    adapter: str | None = None
    """Adapter and version that answered, ``"agent_2@7"``."""


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers requests. Implementations batch or throttle inside."""

    @property
    def name(self) -> str: ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion a request, in order.

        Raises:
            ModelError: the model cannot answer; nothing of the batch is returned.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class ScoringModel(ChatModel, Protocol):
    """A model that can also tell how probable a given reply is."""

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each JSON action under its request; ``-inf`` if impossible."""
        ...
