"""A transformers model in this process, with one LoRA adapter a node, behind the model seam.

Requests of all agents and all runs that wait at the same moment are answered by one batched
forward, rows routed to their own adapter. The same object is what training updates.

What is the same for every such model is here; how a request becomes tokens and tokens become a
reply is a sub-class's: :mod:`swarm_ui.nodes.models.tiny_agent.local_model`,
:mod:`swarm_ui.nodes.models.transformers.causal_model`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.batcher import Batcher
from swarm_ui.nodes.models.transformers.decoding import Continuation, Row, accepts, generate
from swarm_ui.nodes.models.transformers.lora_adapters import LoraAdapters

MAX_WAITING = 1024
_BATCH_ROWS = 64
_BATCHES = 4
"""Forwards for one gathering of requests: more to choose from means rows of like length."""
_BATCH_TOKENS = 65_536


class Prompt(Protocol):
    """A request as the network reads it."""

    @property
    def ids(self) -> list[int]: ...


P = TypeVar("P", bound=Prompt)


class _Job(NamedTuple, Generic[P]):
    """A request on its way: read, and with the version that will answer."""

    request: Request
    version: str | None
    prompt: P


@dataclass(slots=True)
class Counters:
    """What the model has done since it was made; for tokens per second and shares of time."""

    calls: int = 0
    scored: int = 0
    batches: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Wall time spent inside the model."""


class InProcessModel(ABC, Generic[P]):
    """A causal language model with named, versioned adapters and coalesced calls."""

    def __init__(
        self,
        adapters: LoraAdapters,
        *,
        name: str,
        pad_id: int,
        stops: Collection[int],
        linger: float,
        max_waiting: int,
    ) -> None:
        """
        Args:
            adapters: hold the network.
            stops: tokens that end a reply.
            linger, max_waiting: see :class:`~swarm_ui.nodes.models.batcher.Batcher`.
        """
        self._adapters = adapters
        self._name = name
        self._pad_id, self._stops = pad_id, stops
        self.counters = Counters()
        gathered = _BATCH_ROWS * _BATCHES
        self._generations: Batcher[_Job[P], Completion] = Batcher(
            self._generate, max_batch=gathered, max_waiting=max_waiting, linger=linger
        )
        self._scores: Batcher[tuple[_Job[P], list[int]], float] = Batcher(
            self._score, max_batch=gathered, max_waiting=max_waiting, linger=linger
        )

    # -- what a sub-class knows ---------------------------------------------------------------

    @abstractmethod
    def _read(self, request: Request) -> P:
        """The prompt of a request.

        Raises:
            ModelError: this model cannot answer such a request.
        """

    @abstractmethod
    def _row(self, request: Request, prompt: P) -> Row:
        """How to continue a prompt."""

    @abstractmethod
    def _text(self, prompt: P, ids: list[int]) -> str:
        """The reply that new tokens stand for."""

    @abstractmethod
    def _shown(self, prompt: P) -> str:
        """The prompt as text, for the trace."""

    @abstractmethod
    def _reply(self, prompt: P, reply: str) -> list[int] | None:
        """Tokens of a JSON reply, with the end token; ``None``: it is no action."""

    # -- the model seam -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`.

        An adapter's plain name stands for the version that is current when this is called,
        whatever happens to the name before the answer is there.
        """
        with self._leased(requests) as versions:
            return await self._generations.ask(self._jobs(requests, versions))

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """See :class:`swarm_ui.model.ScoringModel`."""
        out = [-math.inf] * len(requests)
        with self._leased(requests) as versions:
            jobs = self._jobs(requests, versions)
            pairs = [
                (job, self._reply(job.prompt, reply))
                for job, reply in zip(jobs, replies, strict=True)
            ]
            usable = [i for i, (_, reply) in enumerate(pairs) if reply is not None]
            asked = [(job, reply) for job, reply in pairs if reply is not None]
            for i, value in zip(usable, await self._scores.ask(asked), strict=True):
                out[i] = value
        self.counters.scored += len(requests)
        return out

    async def close(self) -> None:
        """Nothing to release."""

    def set_linger(self, seconds: float) -> None:
        """Wait this long for more requests before a forward (environments behind a socket)."""
        self._generations.linger = self._scores.linger = seconds

    @contextmanager
    def _leased(self, requests: Sequence[Request]) -> Iterator[list[str | None]]:
        versions: list[str | None] = []
        try:
            for request in requests:
                named = request.adapter
                versions.append(None if named is None else self._adapters.lease(named))
            yield versions
        finally:
            for version in versions:
                if version is not None:
                    self._adapters.release(version)

    def _jobs(self, requests: Sequence[Request], versions: Sequence[str | None]) -> list[_Job[P]]:
        begun = time.perf_counter()
        jobs = [
            _Job(request, version, self._read(request))
            for request, version in zip(requests, versions, strict=True)
        ]
        self.counters.seconds += time.perf_counter() - begun
        return jobs

    def _generate(self, jobs: Sequence[_Job[P]]) -> list[Completion]:
        begun = time.perf_counter()
        rows = [self._row(job.request, job.prompt) for job in jobs]
        done: dict[int, Completion] = {}
        for chunk in self._chunks([len(row.prompt) for row in rows], [j.version for j in jobs]):
            with self._adapters.routed([jobs[i].version for i in chunk]) as route:
                new = generate(
                    self._adapters.base,
                    [rows[i] for i in chunk],
                    pad_id=self._pad_id,
                    stops=self._stops,
                    route=route,
                )
            done |= {i: self._completion(jobs[i], each) for i, each in zip(chunk, new, strict=True)}
        counters = self.counters
        counters.calls += len(rows)
        counters.prompt_tokens += sum(c.usage.prompt_tokens for c in done.values())
        counters.completion_tokens += sum(c.usage.completion_tokens for c in done.values())
        counters.seconds += time.perf_counter() - begun
        return [done[i] for i in range(len(jobs))]

    def _completion(self, job: _Job[P], new: Continuation) -> Completion:
        return Completion(
            text=self._text(job.prompt, new.ids),
            prompt=self._shown(job.prompt),
            usage=Usage(
                prompt_tokens=len(job.prompt.ids), completion_tokens=len(new.ids) + new.ended
            ),
            logprob=new.logprob,
            model=self._name,
            adapter=job.version,
        )

    def _score(self, asked: Sequence[tuple[_Job[P], list[int]]]) -> list[float]:
        begun = time.perf_counter()
        out = [0.0] * len(asked)
        lengths = [len(job.prompt.ids) + len(reply) for job, reply in asked]
        for chunk in self._chunks(lengths, [job.version for job, _ in asked]):
            samples = [(asked[i][0].prompt.ids, asked[i][1]) for i in chunk]
            with self._adapters.routed([asked[i][0].version for i in chunk]):
                base = self._adapters.base
                ids, replies = _right_padded(samples, self._pad_id)
                sums = reply_logprobs(base, ids.to(base.device), replies.to(base.device))
            for i, value in zip(chunk, sums.tolist(), strict=True):
                out[i] = value
        self.counters.seconds += time.perf_counter() - begun
        return out

    def _chunks(self, lengths: Sequence[int], versions: Sequence[str | None]) -> list[list[int]]:
        """Rows of about equal length, to waste little on padding; those of one version together."""
        chunks: list[list[int]] = []
        for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
            room = min(_BATCH_ROWS, _BATCH_TOKENS // max(1, lengths[i]))
            if not chunks or len(chunks[-1]) >= room:
                chunks.append([])
            chunks[-1].append(i)
        self.counters.batches += len(chunks)
        return [sorted(chunk, key=lambda i: versions[i] or "") for chunk in chunks]

    # -- adapters -----------------------------------------------------------------------------

    @property
    def adapters(self) -> tuple[str, ...]:
        return self._adapters.names

    def add_adapter(
        self, name: str, rank: int = 16, alpha: float = 32, copy_from: str | None = None
    ) -> None:
        """A new LoRA adapter on every linear layer; see :meth:`LoraAdapters.add`."""
        self._adapters.add(name, rank=rank, alpha=alpha, copy_from=copy_from)

    def load_adapter(self, folder: Path, name: str) -> str:
        """Load one adapter in peft's own format, also while requests are under way.

        Returns:
            its version; a new one if the name exists. Who leases an older one keeps it.

        Raises:
            ConfigError: the folder holds no plain LoRA adapter that fits this model.
        """
        return self._adapters.load_one(folder, name)

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter. Leased versions, and requests under way, are not disturbed.

        Raises:
            ConfigError: there is none of that name, or one is in training.
        """
        self._adapters.unload(name)

    def lease(self, adapter: str) -> str:
        """The exact version that answers under a name now, kept until :meth:`release`.

        Leases are counted; a request may name the version (``"agent_2@7"``) as its adapter.

        Raises:
            ModelError: there is no such adapter.
        """
        return self._adapters.lease(adapter)

    def release(self, version: str) -> None:
        """Give up one lease.

        Raises:
            ModelError: there is none.
        """
        self._adapters.release(version)

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The weights of one adapter, in a fixed order. Change them only in :meth:`activate`."""
        return self._adapters.parameters(name)

    def bump(self, name: str) -> str:
        """Say that an adapter's weights have changed; returns its new version."""
        return self._adapters.bump(name)

    def save_adapters(self, folder: Path) -> None:
        """One sub-folder an adapter, in peft's own format, and their versions."""
        self._adapters.save(folder)

    def load_adapters(self, folder: Path) -> None:
        """Load what :meth:`save_adapters` wrote; adapters of the same name are replaced."""
        self._adapters.load(folder)

    def activate(self, name: str) -> AbstractContextManager[nn.Module]:
        """Training mode with one adapter in use and only its weights trainable.

        Requests that come meanwhile are answered by the weights as they were on entering.
        """
        return self._adapters.active(name)

    def reference(self) -> AbstractContextManager[nn.Module]:
        """The base model: no adapter in use, no gradients."""
        return self._adapters.off()

    @contextmanager
    def routed(self, versions: Sequence[str | None]) -> Iterator[nn.Module]:
        """The network, whose forwards inside send each row of a batch through its own adapter.

        Args:
            versions: one a row, as :meth:`lease` gave them; ``None``: the base model.
        """
        with self._adapters.routed(versions):
            yield self._adapters.base

    # -- training -----------------------------------------------------------------------------

    @property
    def module(self) -> nn.Module:
        """The network, adapters and all; in evaluation mode outside :meth:`activate`."""
        return self._adapters.network

    @property
    def network(self) -> nn.Module:
        """The transformers model, for training all of its weights."""
        return self._adapters.base

    @property
    def pad_id(self) -> int:
        return self._pad_id


@torch.inference_mode()
def reply_logprobs(network: nn.Module, ids: Tensor, replies: Tensor) -> Tensor:
    """Summed log-probability (nats) of the tokens that ``replies`` marks, shape ``[batch]``."""
    return summed_logprobs(network, ids, replies)


def summed_logprobs(network: nn.Module, ids: Tensor, replies: Tensor) -> Tensor:
    """As :func:`reply_logprobs`, with gradients.

    Args:
        ids: ``[batch, tokens]``: prompt, reply, padding on the right (no mask is needed then).
        replies: the same shape, 1 on the reply's tokens.
    """
    first = int(replies.argmax(1).min())  # no logits are needed before the first reply begins
    keep = ids.shape[1] - first
    few = {"logits_to_keep": keep} if "logits_to_keep" in accepts(network) else {}
    output = network(input_ids=ids[:, :-1], use_cache=False, **few)
    logits = output.logits[:, -keep:].float()
    wanted = ids[:, first:, None]
    gained = logits.log_softmax(-1).gather(2, wanted)[:, :, 0]
    sums: Tensor = (gained * replies[:, first:]).sum(1)
    return sums


def _right_padded(
    samples: Sequence[tuple[list[int], list[int]]], pad_id: int
) -> tuple[Tensor, Tensor]:
    longest = max(len(prompt) + len(reply) for prompt, reply in samples)
    ids = torch.full((len(samples), longest), pad_id, dtype=torch.long)
    replies = torch.zeros((len(samples), longest))
    for row, (prompt, reply) in enumerate(samples):
        end = len(prompt) + len(reply)
        ids[row, :end] = torch.tensor(prompt + reply)
        replies[row, len(prompt) : end] = 1
    return ids, replies
