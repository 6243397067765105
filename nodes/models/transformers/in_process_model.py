"""A transformers model in this process that answers requests with one LoRA adapter per agent.

Requests of all agents and all runs that wait at the same moment are answered by one batched
forward, in which each row uses its own adapter. Training updates the same object.

A model has a network with adapters, a batcher, a decoder, and a codec, which turns requests into
tokens and tokens into replies: that of the tiny agents, or of chats with or without pictures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

import msgspec
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.errors import ConfigError, ModelError, brief
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Request, at_leased_versions
from swarm_ui.nodes.models.batcher import Batcher
from swarm_ui.nodes.models.transformers.decoding import Continuation, Decoder, Row
from swarm_ui.nodes.models.transformers.forwards import Pictures, token_logprobs
from swarm_ui.nodes.models.transformers.lora import PROJECTIONS, LoraNetwork
from swarm_ui.nodes.models.transformers.routing import FrozenAdapter
from swarm_ui.nodes.models.versions import not_sent


class Prompt(Protocol):
    """A request as tokens."""

    @property
    def ids(self) -> list[int]: ...


P = TypeVar("P", bound=Prompt)


class Codec(Protocol[P]):
    """Turns requests into tokens, and tokens into replies."""

    pad_id: int
    """The token that fills a batch."""
    stops: Collection[int]
    """Tokens that end a reply."""
    context: int | None
    """Maximum number of tokens of prompt and reply together; ``None``: no limit, or unknown."""
    pictures: Pictures | None
    """Makes the inputs of a network with pictures; ``None``: it reads token ids."""

    def read(self, request: Request, prompt_format: str) -> P:
        """The prompt of a request. Raises ``ModelError`` if the model cannot answer it."""

    def row(self, request: Request, prompt: P) -> Row:
        """The prompt as a row of the decoder, with its sampling settings and grammar. Raises
        ``ModelError`` if no reply is possible."""

    def completion(self, prompt: P, new: Continuation) -> Completion:
        """The text that new tokens encode, and its prompt."""

    def spoken(self, prompt: P, reply: str) -> list[int] | None:
        """Tokens of a reply as it is, with the end token; ``None``: the model cannot write it."""

    def proposal(self, prompt: P, action: str) -> list[int] | None:
        """Tokens of the reply that proposes this JSON action; ``None`` if the JSON is no action."""

    def save(self, folder: Path) -> None:
        """Write what the codec needs into the folder of a model."""


_Job = tuple[FrozenAdapter | None, Row, tuple[int, ...]]
"""One question to the network: an adapter, a row, and tokens whose probabilities as the first new
token are wanted; none: the row is continued."""


@contextmanager
def loading(expected: str) -> Iterator[None]:
    """A block that loads a model. Raises ``ConfigError``, which begins with what was expected, for
    files that are missing, damaged or malformed."""
    try:
        yield
    except Exception as error:  # of many kinds, from transformers and what it calls
        raise ConfigError(f"{expected} ({type(error).__name__}: {brief(error)})") from error


class InProcessModel(Generic[P]):
    """A causal language model with named, versioned adapters and batched calls. For the methods
    that add, load, save, lease and train adapters see
    :class:`~swarm_ui.nodes.models.transformers.lora.LoraNetwork`."""

    encodes_text: ClassVar[bool] = True
    """Whether replies without a valid action can be encoded too."""

    def __init__(
        self,
        network: PreTrainedModel,
        codec: Codec[P],
        *,
        name: str,
        prompt_format: str = "",
        targets: Sequence[str] | str = PROJECTIONS,
        part: str = "",
        prefix_bytes: int = 0,
        tiny: bool = False,
    ) -> None:
        """
        Args:
            network: a transformers causal language model.
            codec: its tokens.
            name, prompt_format, targets, part: see ``LoraNetwork``.
            prefix_bytes: memory limit for the keys and values of recent prompts. Requests with the
                same adapter version reuse them for a common prefix. 0: every prompt is read whole.
            tiny: whether the network has so few weights that each adapter is merged into a copy of
                them, and a close choice is computed again, so that a reply never depends on the
                requests that are answered with it.
        """
        self.name, self.prompt_format = name, prompt_format
        self.codec, self.pad_id = codec, codec.pad_id
        self.lora = lora = LoraNetwork(
            network, targets, name=name, prompt_format=prompt_format, part=part
        )
        self.add_adapter, self.load_adapters = lora.add_adapter, lora.load_adapters
        self.load_adapter, self.load_version = lora.load_adapter, lora.load_version
        self.save_adapters, self.save_version = lora.save_adapters, lora.save_version
        self.lease, self.release = lora.lease, lora.book.release
        self.adapter_parameters = lora.adapter_parameters
        self.activate = lora.activate
        self.metadata, self.format_of = lora.metadata, lora.format_of
        self.base_weights, self.base_fingerprint = lora.base_weights, lora.base_fingerprint
        self._merged = tiny
        self.decoder = Decoder(
            network,
            pad_id=codec.pad_id,
            stops=codec.stops,
            pictures=codec.pictures,
            prefix_bytes=prefix_bytes,
            same_in_any_batch=tiny,
        )
        self._batcher: Batcher[_Job, Any] = Batcher(
            self._answer, length=lambda job: len(job[1].prompt)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}')"

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the model '{self.name}'")

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return self.lora.adapters

    @property
    def versions(self) -> dict[str, int]:
        """The number of the newest published version of each adapter that was ever leased."""
        return dict(self.lora.book.numbers)

    @property
    def module(self) -> nn.Module:
        """The network with its adapters; see ``LoraNetwork.module``."""
        return self.lora.module

    @property
    def network(self) -> PreTrainedModel:
        """The transformers model, with the adapter layers that peft put into it."""
        return self.lora.network

    @contextmanager
    def routed(self, versions: Sequence[str | None]) -> Iterator[PreTrainedModel]:
        """A context in which each row of a batch goes through its own adapter: ``versions`` from
        :meth:`lease`, one per row, equal ones adjacent; ``None``: the base model."""
        with self.lora.routed([self.lora.frozen(version) for version in versions]):
            yield self.network

    def has_version(self, version: str) -> bool:
        """Whether a version can answer requests: it is current, or leased."""
        return version in self.lora.book

    def save(self, folder: Path, weights: dict[str, Tensor] | None = None) -> None:
        """Weights, configuration, and tokenizer or word list (adapters: ``save_adapters``).

        ``weights``: saved instead of the base weights.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.network.save_pretrained(str(folder), state_dict=weights or self.base_weights())
        self.codec.save(folder)

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`.

        An adapter's name without a version means the version that is current when this is called,
        also if the adapter is replaced before the answer is ready.
        """
        with self._read(requests) as (exact, prompts):
            # Before they join a batch, so that a request without a possible reply fails alone.
            rows = [self.codec.row(*pair) for pair in zip(exact, prompts, strict=True)]
            new = await self._ask(exact, rows)
        return [
            msgspec.structs.replace(
                self.codec.completion(prompt, said),
                usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(said.tokens)),
                logprob=said.logprob,
                model=self.name,
                adapter=request.adapter,
            )
            for request, prompt, said in zip(exact, prompts, new, strict=True)
        ]

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        with self._read(requests) as (exact, prompts):
            said = [self.codec.proposal(*each) for each in zip(prompts, replies, strict=True)]
            here = [k for k, ids in enumerate(said) if ids is not None]
            rows = [Row(prompts[k].ids, said=ids) for k, ids in enumerate(said) if ids is not None]
            read = iter(await self._ask([exact[k] for k in here], rows))
        return [-math.inf if ids is None else next(read).logprob for ids in said]

    async def close(self) -> None:
        """Does nothing: there are no resources."""

    def forget_prompts(self) -> None:
        """Free the memory that holds recent prompts."""
        self.decoder.prefixes.clear()

    def prompt(self, request: Request) -> P:
        """The prompt of a request. Raises ``ModelError`` if this model cannot answer it."""
        return self.codec.read(request, self.format_of(request.adapter))

    @contextmanager
    def _read(self, requests: Sequence[Request]) -> Iterator[tuple[list[Request], list[P]]]:
        """Requests for exact versions, which are leased in the block, and their prompts."""
        with at_leased_versions(self, requests) as exact:
            yield exact, [self.prompt(request) for request in exact]

    async def _ask(
        self, requests: Sequence[Request], rows: Sequence[Row], options: tuple[int, ...] = ()
    ) -> list[Any]:
        """The rows continued in the next batch, or probabilities of options after them."""
        if self.lora.in_use_here():
            raise ModelError(
                f"'{self.name}' is in training or in use in this thread; ask it after the block of "
                "activate() or routed()"
            )
        return await self._batcher.ask([
            (self.lora.frozen(request.adapter), row, options)
            for request, row in zip(requests, rows, strict=True)
        ])  # fmt: skip

    def _answer(self, jobs: Sequence[_Job]) -> list[Any]:
        """The answers to a batch, in the batcher's thread; rows of one adapter are adjacent."""
        found: dict[int, Any] = {}
        adapters, rows, options_of = zip(*jobs, strict=True)
        rank = {adapter: k for k, adapter in enumerate(dict.fromkeys(adapters))}
        order = sorted(range(len(jobs)), key=lambda k: rank[adapters[k]])
        with self.lora.exclusive():
            if self.lora.base_changed():
                self.forget_prompts()
            for options in dict.fromkeys(options_of):
                here = [k for k in order if options_of[k] == options]
                own = [rows[k] for k in here]
                routed = self.lora.routed([adapters[k] for k in here], merged=self._merged)
                with routed as routing, torch.inference_mode():
                    done: Sequence[Any] = (
                        self.decoder.probabilities(routing, own, options)
                        if options
                        else self.decoder.generate(routing, own)
                    )
                found |= zip(here, done, strict=True)
        return [found[k] for k in range(len(jobs))]

    # -- training -----------------------------------------------------------------------------

    def encode(
        self, decision: Decision, reply: str, *, adapter: str | None = None
    ) -> tuple[list[int], list[int]]:
        """Token ids of the prompt as the model reads it, and of a reply, exactly as it would write
        it, with its end token. ``adapter``: the one that would answer, which may have a prompt
        format of its own. Raises ``ModelError`` if the model cannot write this reply, or the prompt
        is too long."""
        # The room for the reply that the run kept is not known; a prompt that fits stays as it is.
        prompt = self.prompt(Request(decision=decision, adapter=adapter, max_tokens=1))
        ids = self.codec.spoken(prompt, reply)
        if ids is None:
            action = parse_action(reply)
            reason = action.reason if isinstance(action, Unparsed) else "no valid action"
            raise ModelError(f"cannot encode the reply {reply!r}: {reason}")
        context = self.codec.context
        if context is not None and len(prompt.ids) + len(ids) > context:
            prompt = self.prompt(Request(decision=decision, adapter=adapter, max_tokens=len(ids)))
        return prompt.ids, ids

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) of each token of replies under the adapter of ``activate``.

        Args:
            ids: ``[batch, tokens]``: prompt, reply, padding on the right.
            attention_mask: not used: a causal model needs no mask for padding on the right.
            reply_mask: same shape, 1 on the reply's tokens.

        Returns:
            ``[batch, columns]`` for the last columns of ``ids``, 0 outside of the reply, and the
            number of its tokens, ``[batch]``.
        """
        mask = reply_mask.to(torch.float)
        with self.lora.exclusive():
            found = token_logprobs(self.network, ids, mask, self.codec.pictures)
        return found, mask[:, 1:].sum(1)
