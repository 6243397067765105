"""A transformers model in this process that answers requests with one LoRA adapter per agent.

Requests of all agents and all runs that wait at the same moment are answered by one batched
forward, in which each row uses its own adapter. Training updates the same object.

Sub-classes turn requests into tokens and tokens into replies:
:mod:`swarm_ui.nodes.models.tiny_agent.local_model` and
:mod:`swarm_ui.nodes.models.transformers.causal_model`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Generic, NamedTuple, NoReturn, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Dropped, Request, at_leased_versions
from swarm_ui.nodes.models.batcher import Batcher
from swarm_ui.nodes.models.counters import Counters
from swarm_ui.nodes.models.transformers.adapters.frozen import FrozenAdapter
from swarm_ui.nodes.models.transformers.adapters.layers import PROJECTIONS
from swarm_ui.nodes.models.transformers.adapters.lora import LoraNetwork
from swarm_ui.nodes.models.transformers.cache import PrefixStore
from swarm_ui.nodes.models.transformers.decoding import Continuation, Row, generate
from swarm_ui.nodes.models.transformers.prefill import Sharing, keeping_logits
from swarm_ui.nodes.models.unsent import not_sent

_BATCH_ROWS = 64
_BATCHES = 4
"""Forwards for one batch of requests. Rows of similar length are put into one forward."""
_BATCH_TOKENS = 65_536
_BATCH_LOGITS = 2e8
"""Logits of one forward that scores replies, 0.8 GB in float32. Each row has logits from the first
token of any reply on, so prompts of very different lengths need many."""


class Prompt(Protocol):
    """A request as tokens."""

    @property
    def ids(self) -> list[int]: ...


P = TypeVar("P", bound=Prompt)


class _Job(NamedTuple, Generic[P]):
    """A request for an exact version of its adapter, with its prompt."""

    request: Request
    prompt: P

    @property
    def version(self) -> str | None:
        """The adapter version that answers the request; ``None``: the base model."""
        return self.request.adapter


class InProcessModel(LoraNetwork, ABC, Generic[P]):
    """A causal language model with named, versioned adapters and batched calls."""

    _context: int | None = None
    """Maximum number of tokens of prompt and reply together; ``None``: no limit, or unknown."""
    _same_in_any_batch = False
    """Whether a reply must not depend on the requests that are answered with it."""
    _merges_adapters = False
    """Whether replies are computed with a copy of the layers' weights for each adapter. This takes
    memory, and saves the time that adapters cost for each token."""

    def __init__(
        self,
        network: PreTrainedModel,
        *,
        name: str,
        pad_id: int,
        stops: Collection[int],
        targets: Sequence[str] | str = PROJECTIONS,
        prefix_bytes: int = 0,
    ) -> None:
        """
        Args:
            network: a transformers causal language model.
            name: the name of the model in traces.
            pad_id: the token that fills a batch.
            stops: tokens that end a reply.
            targets: the layers that get an adapter, as peft's ``target_modules``.
            prefix_bytes: memory limit for the keys and values of recent prompts. Requests with the
                same adapter version reuse them for a common prefix. 0: every prompt is read whole.
        """
        self._prefixes = PrefixStore(prefix_bytes)
        super().__init__(network, targets)
        self.name = name
        self.pad_id, self._stops = pad_id, stops
        self.counters = Counters()
        most = _BATCH_ROWS * _BATCHES
        self._generations: Batcher[tuple[_Job[P], Row], Completion] = Batcher(
            self._generate, max_batch=most
        )
        self._scores: Batcher[tuple[_Job[P], list[int]], float] = Batcher(
            self._score, max_batch=most
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}')"

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the model '{self.name}'")

    # -- what a sub-class defines -------------------------------------------------------------

    @abstractmethod
    def _read(self, request: Request) -> P:
        """The prompt of a request. Raises ``ModelError`` if this model cannot answer it."""

    @abstractmethod
    def _row(self, request: Request, prompt: P) -> Row:
        """The prompt as a row of the decoder, with its sampling settings and grammar. Raises
        ``ModelError`` if no reply is possible."""

    @abstractmethod
    def _text(self, prompt: P, ids: list[int]) -> str:
        """The reply that new tokens encode."""

    @abstractmethod
    def _shown(self, prompt: P) -> str:
        """The prompt as text, for the trace."""

    @abstractmethod
    def _reply(self, prompt: P, reply: str) -> list[int] | None:
        """Tokens of a reply without changes, with the end token; ``None`` if it holds no action."""

    def _proposal(self, prompt: P, action: str) -> list[int] | None:
        """Tokens of the reply that proposes this JSON action; ``None`` if the JSON is no action."""
        return self._reply(prompt, action)

    def _spoken(self, prompt: P, reply: str) -> list[int] | None:
        """Tokens of a reply as it is, with the end token. The reply need not contain an action.
        ``None``: this model cannot write it."""
        return self._reply(prompt, reply)

    def _sampled(self, prompt: P, new: Continuation, text: str) -> tuple[int, ...]:
        """The new tokens, if their text would be tokenised differently."""
        return ()

    def _format(self, prompt: P) -> str:
        """The format of prompts and replies."""
        return "json"

    def _dropped(self, prompt: P) -> Dropped | None:
        """The parts of the decision that the prompt leaves out."""
        return None

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`.

        An adapter's name without a version means the version that is current when this is called,
        also if the adapter is replaced before the answer is ready.
        """
        with at_leased_versions(self, requests) as exact:
            jobs = self._jobs(exact)
            return await self._generations.ask(self._with_rows(jobs), run_of(requests))

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        with at_leased_versions(self, requests) as exact:
            jobs = zip(self._jobs(exact), replies, strict=True)
            read = [(job, self._proposal(job.prompt, reply)) for job, reply in jobs]
            usable = [(job, ids) for job, ids in read if ids is not None]
            scores = iter(await self._scores.ask(usable, run_of(requests)))
        self.counters.scored += len(requests)
        return [-math.inf if ids is None else next(scores) for _, ids in read]

    async def close(self) -> None:
        """Does nothing: there are no resources."""

    def forget_prompts(self) -> None:
        """Free the memory that holds recent prompts."""
        self._prefixes.clear()

    def set_linger(self, seconds: float) -> None:
        """Set how long a forward waits for more requests, if observations come over a socket."""
        self._generations.linger = self._scores.linger = seconds

    def _jobs(self, requests: Sequence[Request]) -> list[_Job[P]]:
        begun = time.perf_counter()
        jobs = [_Job(request, self._read(request)) for request in requests]
        self.counters.seconds += time.perf_counter() - begun
        return jobs

    def _with_rows(self, jobs: Sequence[_Job[P]]) -> list[tuple[_Job[P], Row]]:
        """The jobs with their rows. They are made before the jobs join a batch, so that a request
        without a possible reply fails alone."""
        begun = time.perf_counter()
        made = [(job, self._row(job.request, job.prompt)) for job in jobs]
        self.counters.seconds += time.perf_counter() - begun
        return made

    def _generate(self, asked: Sequence[tuple[_Job[P], Row]]) -> list[Completion]:
        begun = time.perf_counter()
        jobs, rows = [job for job, _ in asked], [row for _, row in asked]
        new = self._computed(rows, [self._frozen_of(job.version) for job in jobs])
        done = [self._completion(job, each) for job, each in zip(jobs, new, strict=True)]
        counters = self.counters
        counters.calls += len(rows)
        counters.prompt_tokens += sum(c.usage.prompt_tokens for c in done)
        counters.completion_tokens += sum(c.usage.completion_tokens for c in done)
        counters.seconds += time.perf_counter() - begun
        return done

    def _computed(
        self, rows: Sequence[Row], adapters: Sequence[FrozenAdapter | None]
    ) -> list[Continuation]:
        if self._base_changed():
            self._prefixes.clear()
        done: dict[int, Continuation] = {}
        for chunk in self._chunks([len(row.prompt) for row in rows], adapters):
            own = [adapters[i] for i in chunk]
            sharing = None
            if self._prefixes.max_bytes:
                keys = ["" if adapter is None else adapter.digest for adapter in own]
                sharing = Sharing(self._prefixes, keys)
            with self._routing(own, merged=self._merges_adapters) as routing:
                new = generate(
                    self.network, [rows[i] for i in chunk], self.pad_id, self._stops, routing,
                    sharing, same_in_any_batch=self._same_in_any_batch,
                )  # fmt: skip
            done |= dict(zip(chunk, new, strict=True))
        return [done[i] for i in range(len(rows))]

    def _completion(self, job: _Job[P], new: Continuation) -> Completion:
        text = self._text(job.prompt, new.ids)
        return Completion(
            text=text,
            prompt=self._shown(job.prompt),
            usage=Usage(prompt_tokens=len(job.prompt.ids), completion_tokens=len(new.tokens)),
            logprob=new.logprob,
            model=self.name,
            adapter=job.version,
            prompt_format=self._format(job.prompt),
            dropped=self._dropped(job.prompt),
            sampled=self._sampled(job.prompt, new, text),
        )

    def _score(self, asked: Sequence[tuple[_Job[P], list[int]]]) -> list[float]:
        begun = time.perf_counter()
        if self._base_changed():
            self._prefixes.clear()
        adapters = [self._frozen_of(job.version) for job, _ in asked]
        out = [0.0] * len(asked)
        lengths = [len(job.prompt.ids) + len(reply) for job, reply in asked]
        begins = [len(job.prompt.ids) for job, _ in asked]
        for chunk in self._chunks(lengths, adapters, begins=begins):
            samples = [(asked[i][0].prompt.ids, asked[i][1]) for i in chunk]
            network = self.network
            with self._routing([adapters[i] for i in chunk], merged=self._merges_adapters):
                ids, replies = _right_padded(samples, self.pad_id)
                ids, replies = ids.to(network.device), replies.to(network.device)
                with torch.inference_mode():
                    sums = token_logprobs(network, ids, replies).sum(1)
            for i, value in zip(chunk, sums.tolist(), strict=True):
                out[i] = value
        self.counters.seconds += time.perf_counter() - begun
        return out

    def _chunks(
        self,
        lengths: Sequence[int],
        adapters: Sequence[FrozenAdapter | None],
        *,
        most_rows: int = _BATCH_ROWS,
        most_tokens: int = _BATCH_TOKENS,
        begins: Sequence[int] | None = None,
    ) -> list[list[int]]:
        """Rows in chunks of similar length; in a chunk, rows of one adapter are adjacent.

        ``begins``: the first token of each row that needs logits; ``None``: only the last ones do.
        """
        chunks: list[list[int]] = []
        words = self.network.config.get_text_config().vocab_size
        first = 0
        for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
            room = min(most_rows, most_tokens // max(1, lengths[i]))
            if begins is not None:
                first = min(first, begins[i])
                room = min(room, int(_BATCH_LOGITS // (words * (lengths[i] - first + 1))))
            if not chunks or len(chunks[-1]) >= room:
                chunks.append([])
                first = 0 if begins is None else begins[i]
            chunks[-1].append(i)
        self.counters.batches += len(chunks)
        order = {id(adapter): k for k, adapter in enumerate(dict.fromkeys(adapters))}
        return [sorted(chunk, key=lambda i: order[id(adapters[i])]) for chunk in chunks]

    # -- training -----------------------------------------------------------------------------

    encodes_text = False
    """Whether replies without a valid action can be encoded too."""

    def encode(
        self, decision: Decision, reply: str, *, adapter: str | None = None
    ) -> tuple[list[int], list[int]]:
        """Token ids of the prompt as the model reads it, and of a reply with its end token.

        Args:
            decision: the context.
            reply: the reply, exactly as the model would write it.
            adapter: the adapter that would answer, which may have a prompt format of its own.

        Raises:
            ModelError: the model cannot write this reply, or the prompt is too long.
        """
        # The room for the reply that the run kept is not known; a prompt that fits stays as it is.
        prompt = self._read(Request(decision=decision, adapter=adapter, max_tokens=1))
        ids = self._spoken(prompt, reply)
        if ids is None:
            action = parse_action(reply)
            reason = action.reason if isinstance(action, Unparsed) else "no valid action"
            raise ModelError(f"cannot encode the reply {reply!r}: {reason}")
        if self._context is not None and len(prompt.ids) + len(ids) > self._context:
            prompt = self._read(Request(decision=decision, adapter=adapter, max_tokens=len(ids)))
        return prompt.ids, ids

    def forward_logprobs(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        reply_mask: Tensor,
        adapters: Sequence[str | None] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) of each token of replies, and their number of tokens.

        Args:
            ids: shape ``[batch, tokens]``: prompt, reply, padding on the right.
            attention_mask: same shape. It is not used: a causal model needs no mask for padding on
                the right.
            reply_mask: same shape, 1 on the reply's tokens.
            adapters: the adapter of each row, whose live weights get gradients (``None``: the base
                model). Not given: all rows use the adapter of :meth:`activate`.

        Returns:
            ``[batch, columns]`` for the last columns of ``ids``, 0 outside of the reply, and the
            number of its tokens, ``[batch]``.
        """
        mask = reply_mask.to(torch.float)
        if adapters is None:
            return self._token_logprobs(ids, mask), mask[:, 1:].sum(1)
        with self.routed_live(adapters):
            return self._token_logprobs(ids, mask), mask[:, 1:].sum(1)

    def _token_logprobs(self, ids: Tensor, replies: Tensor) -> Tensor:
        return token_logprobs(self.network, ids, replies)


def run_of(requests: Sequence[Request]) -> str | None:
    """The run that asks, which the batcher serves in turn with others."""
    return (requests[0].run or None) if requests else None


def token_logprobs(network: nn.Module, ids: Tensor, replies: Tensor) -> Tensor:
    """Log-probability (nats) of the tokens that ``replies`` marks with 1, and 0 elsewhere:
    ``[batch, columns]`` for the last columns of ``ids``, from the first reply on. Both inputs are
    ``[batch, tokens]``: prompt, reply, padding on the right (no mask is needed then)."""
    first = int(replies.argmax(1).min())  # no logits are needed before the first reply
    read = ids[:, :-1]
    output = network(input_ids=read, use_cache=False, **keeping_logits(network, first - 1, read))
    logits = output.logits[:, first - ids.shape[1] :].float()
    # Tokens of pictures in a prompt have ids that no logit has.
    wanted = ids[:, first:, None].clamp(max=logits.shape[-1] - 1)
    gained = logits.log_softmax(-1).gather(2, wanted)[:, :, 0]
    found: Tensor = gained * replies[:, first:]
    return found


def _right_padded(
    samples: Sequence[tuple[list[int], list[int]]], pad_id: int
) -> tuple[Tensor, Tensor]:
    ids = [torch.tensor(prompt + reply) for prompt, reply in samples]
    marks = [torch.tensor([0.0] * len(prompt) + [1.0] * len(reply)) for prompt, reply in samples]
    return pad_sequence(ids, True, pad_id), pad_sequence(marks, True)
