"""A transformers model in this process, with one LoRA adapter a node, behind the model seam.

Requests of all agents and all running episodes that wait at the same moment are answered by one
batched forward, rows routed to their own adapter. The same object is what training updates.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import architecture
from swarm_ui.nodes.adapters import Adapters
from swarm_ui.nodes.coalesce import Coalescer
from swarm_ui.nodes.codec import Codec, Encoded
from swarm_ui.nodes.decoding import Continuation, Row, generate

_BATCH_ROWS = 128
_REPLY_TOKENS = 20
BASE_AGENT = Path(__file__).parent / "base_agent"
"""The checkpoint that ships with the library."""


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


class LocalModel:
    """The embedded agent (or another model of its architecture) with named adapters."""

    def __init__(
        self,
        network: PreTrainedModel,
        codec: Codec,
        *,
        name: str = "base-agent",
        constrained: bool = True,
        linger: float = 0.0,
    ) -> None:
        """
        Args:
            network: a transformers causal language model over the codec's tokens.
            constrained: hold replies to the actions that the screen offers.
            linger: see :class:`~swarm_ui.nodes.coalesce.Coalescer`.
        """
        self._adapters = Adapters(network)
        self.codec = codec
        self._name = name
        self._constrained = constrained
        self.counters = Counters()
        self._generations = Coalescer(self._generate, linger=linger)
        self._scores = Coalescer(self._score, linger=linger)

    # -- making, loading, saving --------------------------------------------------------------

    @classmethod
    def untrained(
        cls, codec: Codec, *, width: int, layers: int, heads: int, seed: int
    ) -> LocalModel:
        """A new agent with random weights."""
        network = architecture.build(
            len(codec),
            width=width,
            layers=layers,
            heads=heads,
            seed=seed,
            pad_id=codec.pad_id,
            eos_id=codec.eos_id,
        )
        return cls(network, codec)

    @classmethod
    def load(cls, folder: Path = BASE_AGENT, *, constrained: bool = True) -> LocalModel:
        """An agent saved by :meth:`save`.

        Raises:
            ConfigError: the folder holds none, or one of another vocabulary.
        """
        words = folder / "words.json"
        if not words.is_file():
            raise ConfigError(
                f"no agent in {folder}: expected words.json, config.json and model.safetensors; "
                "make one with demos/train_base_agent.py --out FOLDER, or give another folder"
            )
        codec = Codec(json.loads(words.read_text(encoding="utf-8")))
        network = AutoModelForCausalLM.from_pretrained(folder)
        if network.config.vocab_size != len(codec):
            raise ConfigError(
                f"{folder}: the weights know {network.config.vocab_size} tokens, the word list "
                f"gives {len(codec)}; the two files do not belong together"
            )
        return cls(network, codec, constrained=constrained)

    def save(self, folder: Path) -> None:
        """Base weights, configuration and word list (adapters: :meth:`save_adapters`)."""
        folder.mkdir(parents=True, exist_ok=True)
        self._adapters.base.save_pretrained(str(folder), state_dict=self._adapters.base_weights())
        (folder / "words.json").write_text(json.dumps(self.codec.extra_words), encoding="utf-8")

    # -- the model seam -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Only requests with a ``decision`` make sense."""
        return await self._generations.ask(requests)

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """See :class:`swarm_ui.model.ScoringModel`."""
        return await self._scores.ask(list(zip(requests, replies, strict=True)))

    async def close(self) -> None:
        """Nothing to release."""

    def set_linger(self, seconds: float) -> None:
        """Wait this long for more requests before a forward (environments behind a socket)."""
        self._generations.linger = self._scores.linger = seconds

    def _generate(self, requests: Sequence[Request]) -> list[Completion]:
        begun = time.perf_counter()
        prompts = [self.codec.encode(_decision(request)) for request in requests]
        rows = [self._row(r, p) for r, p in zip(requests, prompts, strict=True)]
        found: list[Continuation | None] = [None] * len(rows)
        for chunk in _by_length([len(row.prompt) for row in rows]):
            with self._adapters.routed([requests[i].adapter for i in chunk]) as network:
                new = generate(
                    network,
                    [rows[i] for i in chunk],
                    pad_id=self.codec.pad_id,
                    eos_id=self.codec.eos_id,
                )
            self.counters.batches += 1
            for i, continuation in zip(chunk, new, strict=True):
                found[i] = continuation
        done = [c for c in found if c is not None]
        self.counters.calls += len(rows)
        self.counters.prompt_tokens += sum(len(row.prompt) for row in rows)
        self.counters.completion_tokens += sum(len(c.ids) + 1 for c in done)
        completions = [
            self._completion(*each) for each in zip(requests, prompts, done, strict=True)
        ]
        self.counters.seconds += time.perf_counter() - begun
        return completions

    def _row(self, request: Request, prompt: Encoded) -> Row:
        bound = self._constrained
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature,
            seed=request.seed,
            max_tokens=min(request.max_tokens, _REPLY_TOKENS),
            grammar=self.codec.grammar(prompt) if bound else None,
            free=tuple(self.codec.free_words(prompt)) if bound else (),
        )

    def _completion(self, request: Request, prompt: Encoded, new: Continuation) -> Completion:
        action = self.codec.decode(prompt, new.ids)
        text = action.text if isinstance(action, Unparsed) else action.json()
        return Completion(
            text=text,
            prompt=" ".join(self._readable(prompt)),
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(new.ids) + 1),
            logprob=new.logprob,
            model=self._name,
            adapter=None if request.adapter is None else self._adapters.version(request.adapter),
        )

    def _readable(self, prompt: Encoded) -> list[str]:
        named = {id_: word for word, id_ in prompt.slots.items()}
        return [named.get(i, self.codec.tokens[i]) for i in prompt.ids]

    def _score(self, items: Sequence[tuple[Request, str]]) -> list[float]:
        begun = time.perf_counter()
        out = [-math.inf] * len(items)
        pairs = [self._pair(request, reply) for request, reply in items]
        usable = [i for i, pair in enumerate(pairs) if pair is not None]
        lengths = [len(pair[0]) if (pair := pairs[i]) else 0 for i in usable]
        for chunk in _by_length(lengths):
            rows = [usable[k] for k in chunk]
            samples = [pair for i in rows if (pair := pairs[i]) is not None]
            with self._adapters.routed([items[i][0].adapter for i in rows]) as network:
                sums = self._sums(network, samples)
            for i, value in zip(rows, sums.tolist(), strict=True):
                out[i] = value
        self.counters.scored += len(items)
        self.counters.seconds += time.perf_counter() - begun
        return out

    def _pair(self, request: Request, reply: str) -> tuple[list[int], list[int]] | None:
        action = parse_action(reply)
        if isinstance(action, Unparsed):
            return None
        prompt = self.codec.encode(_decision(request))
        return _sample(prompt, self.codec.reply(prompt, action))

    @torch.inference_mode()
    def _sums(self, network: nn.Module, samples: Sequence[tuple[list[int], list[int]]]) -> Tensor:
        ids, replies = _right_padded(samples, self.codec.pad_id)
        logits = network(input_ids=ids[:, :-1], use_cache=False).logits.float()
        gained = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[:, :, 0]
        sums: Tensor = (gained * replies[:, 1:]).sum(1)
        return sums

    # -- adapters -----------------------------------------------------------------------------

    @property
    def adapters(self) -> tuple[str, ...]:
        return self._adapters.names

    def add_adapter(
        self, name: str, rank: int = 16, alpha: float = 32, copy_from: str | None = None
    ) -> None:
        """A new LoRA adapter on every linear layer; see :meth:`Adapters.add`."""
        self._adapters.add(name, rank=rank, alpha=alpha, copy_from=copy_from)

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The weights of one adapter, in a fixed order."""
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
        """Training mode with one adapter in use and only its weights trainable."""
        return self._adapters.active(name)

    def reference(self) -> AbstractContextManager[nn.Module]:
        """The base model: no adapter in use, no gradients."""
        return self._adapters.off()

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
        return self.codec.pad_id

    def encode(self, decision: Decision, reply: str) -> tuple[list[int], list[int]]:
        """Token ids of the prompt as the policy reads it, and of a JSON reply with its end token.

        Raises:
            ModelError: the reply is no valid action, so the policy could not have written it.
        """
        action = parse_action(reply)
        if isinstance(action, Unparsed):
            raise ModelError(f"cannot encode the reply {reply!r}: {action.reason}")
        prompt = self.codec.encode(decision)
        return prompt.ids, self.codec.reply(prompt, action)

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) and number of tokens of replies under the adapter in use.

        Args:
            ids: shape ``[batch, tokens]``: prompt, reply, padding on the right.
            attention_mask: same shape; padding on the right needs no mask in a causal model.
            reply_mask: same shape, 1 on the reply's tokens.
        """
        mask = reply_mask.to(torch.float)
        return _reply_logprobs(self._adapters.base, ids, mask), mask[:, 1:].sum(1)

    def lesson(
        self, decision: Decision, action: Action, rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """As :meth:`encode`, with slots drawn anew: a sample of stage 1."""
        prompt = self.codec.encode(decision, rng)
        return _sample(prompt, self.codec.reply(prompt, action))

    def quiz(
        self, decision: Decision, questions: Sequence[tuple[str, int]], rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """Questions about a screen and their answers: ids, and 1 on the answers'."""
        return self.codec.quiz(self.codec.encode(decision, rng), questions)


def _decision(request: Request) -> Decision:
    if request.decision is None:
        raise ModelError(
            "the embedded agent answers decisions about a screen, not free chat; "
            "use an OpenAI-compatible model for critics and adversaries that talk"
        )
    return request.decision


def _sample(prompt: Encoded, reply: list[int]) -> tuple[list[int], list[int]]:
    return prompt.ids + reply, [0] * len(prompt.ids) + [1] * len(reply)


def _reply_logprobs(network: nn.Module, ids: Tensor, replies: Tensor) -> Tensor:
    """Summed log-probability of the marked tokens, shape ``[batch]``; logits only where needed."""
    hidden = network.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # type: ignore[operator]
    marked = replies[:, 1:] > 0
    logits = network.get_output_embeddings()(hidden[marked]).float()  # type: ignore[operator]
    gained = logits.log_softmax(-1).gather(1, ids[:, 1:][marked][:, None])[:, 0]
    spread = torch.zeros(marked.shape, dtype=gained.dtype).masked_scatter(marked, gained)
    return spread.sum(1)


def _by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Indices in chunks of rows of about equal length, to waste little on padding."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[i : i + _BATCH_ROWS] for i in range(0, len(order), _BATCH_ROWS)]


def _right_padded(
    samples: Sequence[tuple[list[int], list[int]]], pad_id: int
) -> tuple[Tensor, Tensor]:
    longest = max(len(ids) for ids, _ in samples)
    ids = torch.full((len(samples), longest), pad_id, dtype=torch.long)
    replies = torch.zeros((len(samples), longest))
    for row, (tokens, marks) in enumerate(samples):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        replies[row, : len(marks)] = torch.tensor(marks, dtype=torch.float)
    return ids, replies
