"""Supervised training of all weights of a small agent, in one process or in several.

The loss is taken on replies only. The curriculum is that of CollabUIAgents (arXiv 2502.14496); the
number of samples and the share of each level, which the paper does not give, are our own.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.nn.utils.rnn import pad_sequence

from demos.base_agent.screens import QuestionSample
from demos.base_agent.stream import Stream
from swarm_ui.errors import LearningError
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.optim.examples import full_batches

Tokens = tuple[list[int], list[int]]
"""Token ids and a mask of equal length, 1 where the loss is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage1Config:
    """Settings; the included base agent was trained with the defaults."""

    steps: int = 9_000
    tokens_per_batch: int = 2_200
    learning_rate: float = 4e-3
    warmup_steps: int = 50
    final_share: float = 0.05
    """Final learning rate as a share of the peak. The rate falls linearly."""
    questions_first: float = 0.05
    """Share of the steps, at the start, in which most samples are questions about screens."""
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate at a step, from 1."""
        warm = min(1.0, step / max(1, self.warmup_steps))
        return self.learning_rate * warm * max(self.final_share, 1 - step / self.steps)


class Progress(NamedTuple):
    """State of the training."""

    step: int
    steps: int
    loss: float
    """Mean since the last report."""
    seconds: float
    cpu_seconds: float


def print_progress(at: Progress) -> None:
    left = at.seconds / at.step * (at.steps - at.step) / 60
    print(f"step {at.step:,} of {at.steps:,}, loss {at.loss:.3f}, about {left:.0f} minutes left",
          flush=True)  # fmt: skip


def train(
    learner: LocalModel,
    stream: Stream,
    config: Stage1Config,
    *,
    report: Callable[[Progress], None] | None = None,
) -> Progress:
    """Train all weights of the learner in place; return the final state.

    In several processes (``torchrun``), each with samples of its own, gradients are averaged.
    ``report`` is called every 50 steps and at the end. Raises ``LearningError`` if the loss or a
    gradient is not finite, before any weight is changed."""
    network: nn.Module = learner.network
    network.train()
    weights = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=config.learning_rate, betas=(0.9, 0.98),
                                  weight_decay=0.01)  # fmt: skip
    batches = _batches(learner, stream, config)
    start, cpu, losses = time.monotonic(), time.process_time(), list[float]()
    last = Progress(0, config.steps, math.nan, 0.0, 0.0)
    for step in range(1, config.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = config.rate(step)
        loss = reply_loss(network, *next(batches))
        losses.append(loss.item())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        _average_gradients(network)
        norm = nn.utils.clip_grad_norm_(weights, 1.0).item()
        if not math.isfinite(losses[-1] + norm):
            raise LearningError(
                f"stage 1: the loss is {losses[-1]} and the gradient's norm {norm} at step {step} "
                f"of {config.steps}; the weights are those of the step before. Lower learning_rate "
                f"(it was {config.rate(step):g})"
            )
        optimizer.step()
        if step % 50 == 0 or step == config.steps:
            wall, used = time.monotonic() - start, time.process_time() - cpu
            last = Progress(step, config.steps, sum(losses) / len(losses), wall, used)
            losses.clear()
            if report is not None:
                report(last)
    network.eval()
    return last


def reply_loss(network: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy (nats) on the marked tokens. ``ids`` and ``mask`` have the shape
    ``[batch, tokens]``, padded on the right; the mask is 1 where the token is a target."""
    hidden = network.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # type: ignore[operator]
    wanted = mask[:, 1:] > 0
    logits = network.get_output_embeddings()(hidden[wanted])  # type: ignore[operator]
    return F.cross_entropy(logits, ids[:, 1:][wanted])


def pad(samples: Sequence[Tokens], pad_id: int) -> tuple[Tensor, Tensor]:
    """Samples as two tensors ``[batch, tokens]``, padded on the right."""
    ids, marks = (list(map(torch.tensor, each)) for each in zip(*samples, strict=True))
    return pad_sequence(ids, True, pad_id), pad_sequence(marks, True)


def _batches(
    learner: LocalModel, stream: Stream, config: Stage1Config
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches with about the same number of tokens, each of samples of about the same length."""
    rng, made, words = random.Random(config.seed), 0, learner.tokenizer

    def drawn() -> Tokens:
        early = made < config.questions_first * config.steps
        sample = stream.draw(0.6 if early else None)
        if isinstance(sample, QuestionSample):
            return words.quiz(words.encode(sample.decision, rng), sample.questions)
        return learner.lesson(sample.decision, sample.action, rng)

    while True:
        some = full_batches([drawn() for _ in range(400)], lambda sample: len(sample[0]),
                            config.tokens_per_batch)  # fmt: skip
        rng.shuffle(some)
        for batch in some:
            made += 1
            yield pad(batch, learner.pad_id)


def _average_gradients(network: nn.Module) -> None:
    """Replace every gradient by its mean over the processes, if there are several."""
    if not distributed.is_initialized():
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = parameters_to_vector(gradients)
    distributed.all_reduce(flat)
    vector_to_parameters(flat / distributed.get_world_size(), gradients)
