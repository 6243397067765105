"""Training of a critic: an adapter of a language model learns whether replies are right.

The loss is the cross-entropy of the label over the two answers. All replies to a screen are packed
into one row of tokens, so they cost little more than one reply. Ordinary fine-tuning would train
the probability of the answer over the whole vocabulary, with a row for each reply.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.model import ChatMessage
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.optim.credit.learned.judged import JudgedScreen, balanced
from swarm_ui.optim.credit.learned.question import OPTIONS, question
from swarm_ui.optim.examples import Trainable, full_batches
from swarm_ui.optim.update import training_mode
from swarm_ui.prompts import format_named


class Packed(Protocol):
    """One or several prompts as one row of tokens."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def ends(self) -> list[int]:
        """For each prompt, the position of its last token in ``ids``."""
        ...


@runtime_checkable
class TrainableJudge(Trainable, Protocol):
    """A choosing model whose adapters can be trained."""

    def packed(self, chats: Sequence[Sequence[ChatMessage]]) -> Sequence[Packed]:
        """Chats as rows of tokens, in order. Adjacent chats with a common prefix may share a
        row."""
        ...

    def option_logits(self, rows: Sequence[Any], options: Sequence[str]) -> list[Tensor]:
        """Logits of the answer options (such as "yes" and "no") after each prompt: one tensor
        ``[prompts in the row, options]`` for each row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticConfig:
    """Settings of the training."""

    prompt_format: str = "compact"
    epochs: float = 1.0
    """Passes over the screens."""
    minutes: float = math.inf
    """The training ends after this time at the latest. The learning rate then also depends on the
    time, so that it reaches its final value; but then equal seeds do not give equal weights."""
    tokens_per_batch: int = 2_400
    """Tokens in one optimiser step, padding included."""
    most: int = 6
    """Maximum number of replies to one screen; see
    :func:`~swarm_ui.optim.credit.learned.judged.balanced`."""
    learning_rate: float = 5e-4
    warmup: int = 20
    """Steps of linear warm-up. Then the rate falls linearly to ``floor`` times its peak."""
    floor: float = 0.02
    rank: int = 16
    alpha: int = 32
    max_grad_norm: float = 1.0
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    seed: int = 0

    def __post_init__(self) -> None:
        positive = ("epochs", "minutes", "learning_rate", "max_grad_norm", "tokens_per_batch")
        wrong = [name for name in positive if not getattr(self, name) > 0]
        if wrong or self.most < 2 or self.rank < 1:
            raise ConfigError(
                "critic training: expected "
                + (
                    f"{', '.join(wrong)} above 0, got "
                    f"{', '.join(str(getattr(self, name)) for name in wrong)}"
                    if wrong
                    else f"most >= 2 and rank >= 1, got {self.most} and {self.rank}"
                )
            )


class CriticProgress(NamedTuple):
    """State of the training, for a progress bar."""

    share: float
    """Finished share of the training, in [0, 1]."""
    step: int
    replies: int
    """Replies trained on so far."""
    loss: float
    """Mean loss over the last steps, nats; a random guess has ``log 2``. NaN before the first
    step."""
    accuracy: float
    """Share of replies in the last steps whose label had more than half of the probability."""
    seconds: float
    """Wall time so far."""


class _Row(NamedTuple):
    packed: Packed
    right: list[bool]


def train_critic(
    model: TrainableJudge,
    adapter: str,
    screens: Sequence[JudgedScreen],
    config: CriticConfig | None = None,
    *,
    report: Callable[[CriticProgress], None] | None = None,
    every: int = 10,
) -> CriticProgress:
    """Train an adapter in place; returns the final state.

    Args:
        model: the language model.
        adapter: its name; it is added if the model does not have it.
        screens: judged screens, which are balanced first.
        config: settings.
        report: called after every ``every`` steps and at the end.
        every: see ``report``.

    Raises:
        ConfigError: the screens do not have both right and wrong replies.
        LearningError: a loss or a gradient is not a number; the adapter has the weights of the
            step before.
    """
    settings = config or CriticConfig()
    rows = list(_rows(model, screens, settings))
    if not rows:
        raise ConfigError(
            "critic training: there are no right and wrong replies to learn from; "
            f"got {len(screens)} screens"
        )
    if adapter not in model.adapters:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            model.add_adapter(adapter, rank=settings.rank, alpha=settings.alpha)
    mode = UpdateConfig(checkpointing=settings.checkpointing)
    with (
        torch.random.fork_rng(devices=[]),
        model.activate(adapter),
        training_mode(model.module, mode),
    ):
        torch.manual_seed(settings.seed)
        last = _Loop(model, adapter, rows, settings).run(report, every)
    return last


def _rows(
    model: TrainableJudge, screens: Sequence[JudgedScreen], settings: CriticConfig
) -> Iterator[_Row]:
    form = format_named(settings.prompt_format)
    for screen in balanced(screens, random.Random(settings.seed), most=settings.most):
        chats = [question(screen.observation, reply.action, form) for reply in screen.replies]
        labels = [reply.right for reply in screen.replies]
        for packed in model.packed(chats):
            size = len(packed.ends)
            yield _Row(packed, labels[:size])
            labels = labels[size:]


class _Loop:
    """The steps of one training."""

    def __init__(
        self, model: TrainableJudge, adapter: str, rows: Sequence[_Row], settings: CriticConfig
    ) -> None:
        self._model, self._settings = model, settings
        self._parameters = model.adapter_parameters(adapter)
        self._optimizer = torch.optim.AdamW(self._parameters, lr=settings.learning_rate)
        self._batches = _schedule(rows, settings)
        self._recent: list[tuple[float, float]] = []

    def run(self, report: Callable[[CriticProgress], None] | None, every: int) -> CriticProgress:
        began, replies = time.monotonic(), 0
        progress = CriticProgress(0.0, 0, 0, math.nan, math.nan, 0.0)
        for step, batch in enumerate(self._batches):
            passed = (time.monotonic() - began) / 60 / self._settings.minutes
            share = max(step / len(self._batches), passed)
            if share >= 1.0:
                break
            self._step(step, share, batch)
            replies += sum(len(row.right) for row in batch)
            seconds = time.monotonic() - began
            ended = step + 1 == len(self._batches)
            share = max((step + 1) / len(self._batches), seconds / 60 / self._settings.minutes)
            loss, hits = (sum(found) / len(found) for found in zip(*self._recent, strict=True))
            progress = CriticProgress(min(1.0, share), step + 1, replies, loss, hits, seconds)
            if report is not None and ((step + 1) % every == 0 or ended or share >= 1.0):
                report(progress)
            self._recent = self._recent[-4 * every :]
        return progress

    def _step(self, step: int, share: float, batch: Sequence[_Row]) -> None:
        settings = self._settings
        rows = [row.packed for row in batch]
        logits = torch.cat(self._model.option_logits(rows, OPTIONS))
        right = torch.tensor([label for row in batch for label in row.right], device=logits.device)
        odds = logits[:, 0] - logits[:, 1]
        loss = F.binary_cross_entropy_with_logits(odds, right.float())
        self._check_finite("loss", loss, step)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self._parameters, settings.max_grad_norm)
        self._check_finite("gradient's norm", norm, step)
        warm = min(1.0, (step + 1) / max(1, settings.warmup))
        for group in self._optimizer.param_groups:
            group["lr"] = settings.learning_rate * warm * max(settings.floor, 1.0 - share)
        self._optimizer.step()
        hits = float(((odds.detach() > 0) == right).float().mean())
        self._recent.append((float(loss.detach()), hits))

    def _check_finite(self, what: str, value: Tensor, step: int) -> None:
        """Raise ``LearningError`` before a step whose loss or gradient is infinite or not a
        number."""
        if not bool(value.isfinite()):
            raise LearningError(
                f"critic training: the {what} is {float(value.detach())} at step {step + 1}; the "
                "weights are those of the step before. Lower learning_rate (it is "
                f"{self._settings.learning_rate:g})"
            )


def _schedule(rows: Sequence[_Row], settings: CriticConfig) -> list[list[_Row]]:
    """Batches of about ``tokens_per_batch``, each of rows of about the same length."""
    rng = random.Random(settings.seed)
    wanted = max(1, round(settings.epochs * len(rows)))
    drawn: list[_Row] = []
    while len(drawn) < wanted:
        drawn += rng.sample(list(rows), min(len(rows), wanted - len(drawn)))
    batches: list[list[_Row]] = []
    for first in range(0, len(drawn), 256):
        part = drawn[first : first + 256]
        here = full_batches(part, lambda row: len(row.packed.ids), settings.tokens_per_batch)
        rng.shuffle(here)
        batches += here
    return batches
