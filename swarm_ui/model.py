"""The interface to language models.

A node passes a :class:`Request` to a :class:`ChatModel` and gets a :class:`Completion`, which
contains the exact prompt that was used. A request about a screen contains a :class:`Decision`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import isfinite
from typing import Literal, Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.message import Heard, Usage
from swarm_ui.observation import Observation


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A function that a model may call."""

    name: str
    description: str = ""
    parameters: str = '{"type": "object"}'
    """JSON schema of the arguments, which are one object, as JSON text."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, as the model wrote it."""

    name: str
    arguments: str
    """JSON text; a model may write text that is not valid."""
    id: str = ""
    """Unique within a chat; the turn with the result names it."""


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    """``"tool"``: the result of a call."""
    content: str
    images: tuple[bytes, ...] = ()
    """Pictures that go with the text, each a PNG file; only for models that can see."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that the assistant calls in this turn."""
    answers: str = ""
    """Id of the tool call that this turn answers; only for turns of a tool."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a decision that are left out of a prompt because of its token limit."""

    history: int = 0
    """Number of past actions, the oldest first."""
    reasons: tuple[int, ...] = ()
    """Positions in :attr:`Decision.heard` of messages that are shown without their reason."""
    elements: tuple[int, ...] = ()
    """Indices of elements, as the agent numbers them; the others keep theirs."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The input of one agent: its view of the screen and the messages it received."""

    observation: Observation
    """The screen in the agent's view, which has its own order and indices of elements."""
    heard: tuple[Heard, ...] = ()
    """Received messages: the agent's own last one, then those of its predecessors in edge order."""
    partial: bool = False
    """Whether the agent sees only a part of the screen. It may then abstain. Hidden elements that
    others refer to have numbers after those of the visible ones."""
    dropped: Dropped | None = None
    """Parts that the prompt omits, or omitted in a recorded decision; ``None``: the model decides.
    """

    def reaches(self, action: Action) -> bool:
        """Whether the agent can refer to all elements of an action: it sees them, or a message
        names them."""
        told = {i for h in self.heard if h.action is not None for i in h.action.targets}
        shown = len(self.observation.elements)
        return all(i < shown or i in told for i in action.targets)


class Request(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One call to a model. Exactly one of ``decision`` and ``chat`` is set."""

    decision: Decision | None = None
    chat: tuple[ChatMessage, ...] | None = None
    adapter: str | None = None
    """Name of the LoRA adapter to answer with; ``None``: the base model."""
    temperature: float | None = None
    """Sampling temperature; with 0, the most probable token is chosen. ``None``: not chosen; an
    endpoint uses its own, a model in this process 0."""
    max_tokens: int | None = None
    """Maximum number of tokens of the reply. ``None``: not chosen; see :attr:`reply_tokens`."""
    seed: int = 0
    """Seeds the sampling of this request. An endpoint gets it only with
    ``ChatOptions(send_seed=True)``."""
    run: str = ""
    """Name of the calling run; a model that batches serves runs in turn."""
    json_schema: str | None = None
    """JSON schema (as JSON text) the reply must follow, where the model supports it."""
    pattern: str | None = None
    """Regular expression that the whole reply must match, where the model supports it (vLLM)."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the model may call; :func:`swarm_ui.prompts.as_chat` writes them as text."""

    @property
    def reply_tokens(self) -> int:
        """``max_tokens``; if it was not chosen, 256 for a decision and 1024 for a chat. This limits
        models in this process and reserves a budget; endpoints have limits of their own."""
        own = 1024 if self.decision is None else 256
        return own if self.max_tokens is None else self.max_tokens


class Generation(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How a model made a reply: all of its :class:`Completion` that is not the reply itself."""

    prompt: str
    """The exact prompt as the model read it."""
    usage: Usage = Usage()
    """Tokens of the call; estimated if a server does not count them."""
    logprob: float | None = None
    """Log-probability (nats) of the reply, summed over its tokens; ``None`` if unknown."""
    model: str = ""
    """Name of the model, as its server or class reports it."""
    adapter: str | None = None
    """Adapter and version that answered, ``"agent_2@7"``; ``None``: the base model."""
    dropped: Dropped | None = None
    """Parts of the decision that the prompt omits; ``None``: none."""
    sampled: tuple[int, ...] = ()
    """Ids of the sampled tokens, an end token included, if the text would be divided into others
    or was cut off. Else empty."""

    def __post_init__(self) -> None:
        if self.logprob is not None and not isfinite(self.logprob):  # JSON has no such number
            msgspec.structs.force_setattr(self, "logprob", None)


class Completion(Generation, frozen=True, kw_only=True):
    """A model's answer."""

    text: str
    prompt_format: str = "json"
    """The format of the text, see :mod:`swarm_ui.prompts`."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of tools that the model made through its own interface, and not in the text."""


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers requests. Implementations may batch or throttle requests internally.

    A model that holds resources also has ``async def close(self)``; see :func:`close_model`.
    """

    @property
    def name(self) -> str: ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order. Raises ``ModelError`` if it cannot answer one
        of them."""
        ...


async def close_model(model: object) -> None:
    """Close a model that has a method ``close``; it is optional."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


@runtime_checkable
class ScoringModel(ChatModel, Protocol):
    """A model that can also compute the probability of a given reply."""

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each JSON action under its request; ``-inf`` if impossible."""
        ...


@runtime_checkable
class ChoosingModel(ChatModel, Protocol):
    """A model that can also give probabilities of a few short replies, such as "yes" and "no"."""

    async def probabilities(
        self, requests: Sequence[Request], options: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Probability of each option as the reply, among the options only; they sum to 1.

        Options are compared by their first tokens. Raises ``ConfigError`` for fewer than two, or
        two with the same first token, and ``ModelError``.
        """
        ...


@runtime_checkable
class StreamingModel(ChatModel, Protocol):
    """A model whose reply can be read while it is being written."""

    def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """Pieces of the reply as they arrive, and finally the whole :class:`Completion`.

        Joined together, the pieces are its text, unless a reply broke off and the model asked
        again. Closing the iterator early cancels the call. A ``ModelError`` may follow pieces.
        """
        ...


@runtime_checkable
class VersionedModel(ChatModel, Protocol):
    """A model whose adapters can be replaced by newer versions during runs."""

    def lease(self, adapter: str) -> str:
        """The exact version that answers under this name now, such as ``"agent_2@7"``.

        It stays available until it was released as often as it was leased. A request may name it
        as its adapter. Raises ``ModelError`` if there is no such adapter.
        """
        ...

    def release(self, version: str) -> None:
        """End a lease; raises ``ModelError`` if the version is not leased."""
        ...


@contextmanager
def at_leased_versions(
    model: VersionedModel, requests: Sequence[Request]
) -> Iterator[list[Request]]:
    """The requests, each for an exact version of its adapter, which is leased inside the block.
    Raises ``ModelError`` if there is no such adapter; then nothing is leased."""
    with ExitStack() as leases:

        def exact(request: Request) -> Request:
            if request.adapter is None:
                return request
            version = model.lease(request.adapter)
            leases.callback(model.release, version)
            return msgspec.structs.replace(request, adapter=version)

        yield list(map(exact, requests))


def check_model(where: str, model: object) -> None:
    """Raise ``ConfigError`` for something that is not a model, such as the name of one."""
    if isinstance(model, type) or not callable(getattr(model, "generate", None)):
        got = f"the class {model.__name__}" if isinstance(model, type) else repr(model)
        raise ConfigError(
            f"{where}: expected a model, such as OpenAIModel('NAME', 'http://localhost:8000/v1'), "
            f"LocalModel.load() or CausalModel.named('smollm2') of swarm_ui.nodes, got {got}"
        )
