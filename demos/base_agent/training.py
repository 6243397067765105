"""Supervised training of all weights of a small agent, in one process or in several.

The loss is taken on replies only. The curriculum follows CollabUIAgents
(arXiv 2502.14496), section on agentic fine-tuning. The number of samples and the share of each
level are our own, because the paper does not give them.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.nn.utils.rnn import pad_sequence

from demos.base_agent.screens import ActionSample, QuestionSample, SampleSource
from swarm_ui.errors import LearningError
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.optim.examples import full_batches

Tokens = tuple[list[int], list[int]]
"""Token ids and a mask of equal length, 1 where the loss is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage1Config:
    """Settings; the shipped checkpoint was trained with the defaults."""

    steps: int = 9_000
    tokens_per_batch: int = 2_200
    learning_rate: float = 4e-3
    warmup_steps: int = 50
    final_share: float = 0.05
    """Final learning rate as a share of the peak. The rate falls linearly."""
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    questions_first: float = 0.05
    """Share of the steps, at the start, in which most samples are questions about screens."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """State of the training, for a progress bar."""

    step: int
    steps: int
    loss: float
    samples: int
    tokens: int
    seconds: float
    """Wall time so far."""
    cpu_seconds: float


def print_progress(progress: Progress) -> None:
    left = progress.seconds / progress.step * (progress.steps - progress.step)
    print(
        f"step {progress.step:,} of {progress.steps:,}, loss {progress.loss:.3f}, "
        f"about {left / 60:.0f} minutes left",
        flush=True,
    )


def train(
    learner: LocalModel,
    stream: SampleSource,
    config: Stage1Config,
    *,
    report: Callable[[Progress], None] | None = None,
    every: int = 50,
) -> Progress:
    """Train all weights of the learner; return the final state.

    In several processes (``torchrun``), gradients are averaged after each backward pass.

    Args:
        learner: trained in place.
        stream: source of samples; every process of a group has its own.
        config: settings.
        report: called every ``every`` steps and at the end.
        every: see ``report``.

    Raises:
        LearningError: the loss or a gradient is NaN or infinite; the weights are those of the step
            before.
    """
    network: nn.Module = learner.network
    network.train()
    optimizer = torch.optim.AdamW(
        [p for p in network.parameters() if p.requires_grad],
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=config.weight_decay,
    )
    batches = _Batches(learner, stream, config)
    start, cpu = time.monotonic(), time.process_time()
    tokens, losses, last = 0, [], Progress(0, config.steps, math.nan, 0, 0, 0.0, 0.0)
    for step in range(1, config.steps + 1):
        ids, mask = batches.next(step / config.steps < config.questions_first)
        tokens += ids.numel()
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, config)
        loss = reply_loss(network, ids, mask)
        losses.append(_finite("loss", loss.item(), step, config))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        _average_gradients(network)
        norm = nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
        _finite("gradient's norm", norm.item(), step, config)
        optimizer.step()
        if step % every == 0 or step == config.steps:
            wall, used = time.monotonic() - start, time.process_time() - cpu
            mean = sum(losses) / len(losses)
            last = Progress(step, config.steps, mean, batches.drawn, tokens, wall, used)
            losses = []
            if report:
                report(last)
    network.eval()
    return last


def _finite(what: str, value: float, step: int, config: Stage1Config) -> float:
    """The value. Raises ``LearningError`` if it is not finite, before any weight is changed."""
    if not math.isfinite(value):
        raise LearningError(
            f"stage 1: the {what} is {value} at step {step} of {config.steps}; the weights are "
            f"those of the step before. Lower learning_rate (it was {_rate(step, config):g}), and "
            "check the samples for values that are not numbers"
        )
    return value


def reply_loss(network: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy (nats) on the marked tokens.

    Args:
        network: transformers causal language model.
        ids: shape ``[batch, tokens]``, padded on the right.
        mask: same shape, 1 where the token is a target.
    """
    hidden = network.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # type: ignore[operator]
    wanted = mask[:, 1:] > 0
    logits = network.get_output_embeddings()(hidden[wanted])  # type: ignore[operator]
    return F.cross_entropy(logits, ids[:, 1:][wanted])


def pad(samples: Sequence[Tokens], pad_id: int) -> tuple[Tensor, Tensor]:
    """Samples as two tensors ``[batch, tokens]``, padded on the right."""
    ids, marks = (list(map(torch.tensor, each)) for each in zip(*samples, strict=True))
    return pad_sequence(ids, True, pad_id), pad_sequence(marks, True)


def _rate(step: int, config: Stage1Config) -> float:
    warm = min(1.0, step / max(1, config.warmup_steps))
    return config.learning_rate * warm * max(config.final_share, 1 - step / config.steps)


class _Batches:
    """Batches with about the same number of tokens, each of samples of about the same length."""

    def __init__(self, learner: LocalModel, stream: SampleSource, config: Stage1Config) -> None:
        self._learner = learner
        self._stream = stream
        self._room = config.tokens_per_batch
        self._rng = random.Random(config.seed)
        self._ready: list[list[Tokens]] = []
        self.drawn = 0

    def next(self, mostly_questions: bool) -> tuple[Tensor, Tensor]:
        if not self._ready:
            self._ready = self._fill(0.6 if mostly_questions else None)
        return pad(self._ready.pop(), self._learner.pad_id)

    def _fill(self, questions: float | None) -> list[list[Tokens]]:
        drawn = [self._encode(self._stream.draw(questions)) for _ in range(400)]
        self.drawn += len(drawn)
        batches = full_batches(drawn, lambda sample: len(sample[0]), self._room)
        self._rng.shuffle(batches)
        return batches

    def _encode(self, drawn: ActionSample | QuestionSample) -> Tokens:
        if isinstance(drawn, QuestionSample):
            return self._learner.quiz(drawn.decision, drawn.questions, self._rng)
        return self._learner.lesson(drawn.decision, drawn.action, self._rng)


def _average_gradients(network: nn.Module) -> None:
    """Replace every gradient by its mean over the processes, if there are several."""
    if not distributed.is_initialized():
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = parameters_to_vector(gradients)
    distributed.all_reduce(flat)
    vector_to_parameters(flat / distributed.get_world_size(), gradients)
