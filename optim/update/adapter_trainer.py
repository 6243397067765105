"""Training one LoRA adapter on preference pairs or scored replies, for a number of updates."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.batches import (
    Example,
    Row,
    by_length,
    encode_pairs,
    encode_replies,
    lengths_of,
    micro_batches,
    pad,
    schedule,
)  # fmt: skip
from swarm_ui.optim.update.objective import Totals, part_loss
from swarm_ui.optim.update.training_mode import memory_in_use_mb, training_mode
from swarm_ui.optim.update.update_config import (
    Method,
    Reference,
    UpdateConfig,
    defaults_of,
    known,
)

__all__ = ["AdapterTrainer", "Method", "Reference", "UpdateConfig", "UpdateStats"]


class UpdateStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of an update."""

    adapter: str
    pairs: int
    """Number of usable pairs."""
    steps: int
    loss: float | None
    """Mean over the last quarter of the steps; ``None`` if there were none."""
    first_loss: float | None
    """Mean over the first quarter."""
    accuracy: float | None
    """Share of pairs in the last quarter of the steps whose margin is above 0; ``None`` for methods
    without rejected replies."""
    seconds: float
    cpu_seconds: float
    micro_batches: int = 0
    """Forwards and backwards of all steps; more than ``steps`` if batches were divided."""
    largest_forward: int = 0
    """Maximum number of tokens of one forward with a backward, padding included."""
    peak_memory_mb: float | None = None
    """Peak memory between a forward and its backward, in 2**20 bytes: allocated on a GPU, resident
    of the process on a CPU. ``None``: unknown, or nothing was trained."""


class AdapterTrainer:
    """Updates adapters of one :class:`~swarm_ui.optim.protocols.Trainable`."""

    def __init__(self, model: Trainable, config: UpdateConfig | None = None) -> None:
        """``config``: settings that are not set get the defaults of the model."""
        self.model = model
        defaults = defaults_of(model)
        self.config = (config or UpdateConfig()).filled(defaults)
        self._limit = self.config.micro_batch_tokens or defaults.micro_batch_tokens
        self._device = next(model.module.parameters()).device

    def fit(
        self,
        adapter: str,
        examples: Sequence[PreferencePair] | Sequence[ScoredReply],
        rng: random.Random,
    ) -> UpdateStats:
        """Train ``adapter`` in place and raise its version. Other adapters do not change.

        Args:
            examples: pairs, or scored replies for ``pg``. From a pair without a rejected reply,
                only the likelihood of the chosen one is learned.
            rng: draws the batches. Equal states give equal weights.

        Raises:
            LearningError: a loss or a gradient was not a number. The adapter is restored.
        """
        settings, steps = self.config, known(self.config.steps, "steps")
        began = (time.perf_counter(), time.process_time())
        task = _encoded(self.model, examples, settings, adapter)
        done = _Progress()
        if task and steps:
            stream = rng.getrandbits(63)
            batches = schedule(
                lengths_of([example.chosen for example in task]),
                steps=steps,
                batch_size=settings.batch_size,
                rng=rng,
            )
            with training_mode(self.model.module, settings):
                references = self._references(adapter, task, batches)
                # Dropout draws from torch's global stream, so that is seeded inside.
                with torch.random.fork_rng(devices=[]), self.model.activate(adapter):
                    torch.manual_seed(stream)
                    with _restored_on_error(self.model.adapter_parameters(adapter)):
                        self._loop(adapter, task, batches, references, done)
            self.model.bump(adapter)
        last, first = _quarter(done.losses)
        return UpdateStats(
            adapter=adapter,
            pairs=len(task),
            steps=len(done.losses),
            loss=last,
            first_loss=first,
            accuracy=_quarter(done.hits)[0],
            seconds=time.perf_counter() - began[0],
            cpu_seconds=time.process_time() - began[1],
            micro_batches=done.parts,
            largest_forward=done.largest,
            peak_memory_mb=done.peak_mb,
        )

    def _loop(
        self,
        adapter: str,
        task: Sequence[Example],
        batches: Sequence[Sequence[int]],
        references: Tensor | None,
        done: _Progress,
    ) -> None:
        settings = self.config
        parameters = self.model.adapter_parameters(adapter)
        optimizer = torch.optim.AdamW(
            parameters, lr=known(settings.lr, "lr"), betas=settings.betas, weight_decay=0.0
        )
        for step, rows in enumerate(batches):
            optimizer.zero_grad()
            loss, hit = self._accumulate(adapter, step, [task[row] for row in rows],
                                         None if references is None else references[:, list(rows)],
                                         done)  # fmt: skip
            norm = nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            self._check_finite("gradient's norm", norm, adapter, step)
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            optimizer.step()
            done.losses.append(loss)
            done.hits += [] if hit is None else [hit]

    def _accumulate(
        self,
        adapter: str,
        step: int,
        batch: Sequence[Example],
        references: Tensor | None,
        done: _Progress,
    ) -> tuple[float, float | None]:
        """Add up the gradients of a batch, one micro-batch after another.

        Returns:
            The batch's loss, and the share of its pairs whose margin is above 0.
        """
        lengths, sides = [each.longest for each in batch], [each.sides for each in batch]
        totals = Totals.of(batch)
        losses, hits = list[float](), list[float]()
        for part in micro_batches(lengths, sides, self._limit):
            known = None if references is None else references[:, part]
            loss, right = part_loss(
                self._forward, [batch[k] for k in part], totals, self.config, known
            )
            self._check_finite("loss", loss.detach(), adapter, step)
            done.note(sum(sides[k] for k in part) * max(lengths[k] for k in part),
                      memory_in_use_mb(self._device))  # fmt: skip
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(float(loss.detach()))
            hits += right
        return sum(losses), sum(hits) / len(hits) if hits else None

    @torch.no_grad()
    def _references(
        self, adapter: str, task: Sequence[Example], batches: Sequence[Sequence[int]]
    ) -> Tensor | None:
        """Reference log-probabilities, ``[2, examples]``; 0 for examples that no batch uses.

        For a pair: both sides under the reference. For a reply: under the policy that said it
        (the adapter, or what was recorded if the reply is stale) and under the reference.
        """
        settings = self.config
        if settings.method == "rft":
            return None
        known = torch.zeros(2, len(task))
        used = sorted({row for batch in batches for row in batch})
        under = None if settings.reference == "base" else adapter
        if settings.method == "pg":
            known[:, used] = self._all([task[k].chosen for k in used], adapter)
            if under is None:
                known[1, used] = self._all([task[k].chosen for k in used], None)
            for k in used:
                said = task[k].said
                if said is not None:
                    known[0, k] = said
            return known
        paired = [k for k in used if task[k].rejected is not None]
        against = [row for k in paired if (row := task[k].rejected) is not None]
        known[0, paired] = self._all([task[k].chosen for k in paired], under)
        known[1, paired] = self._all(against, under)
        return known

    def _all(self, rows: Sequence[Row], adapter: str | None) -> Tensor:
        """Log-probability of each row, ``[rows]``, under an adapter or the base model."""
        values = torch.zeros(len(rows))
        with self.model.reference() if adapter is None else self.model.activate(adapter):
            training = self.model.module.training
            self.model.module.eval()
            try:
                for part in self._pieces(rows):
                    values[part] = self._forward([rows[k] for k in part])[0].float().cpu()
            finally:
                self.model.module.train(training)
        return values

    def _pieces(self, rows: Sequence[Row]) -> list[list[int]]:
        """The rows of each forward without gradients."""
        lengths = lengths_of(rows)
        return [
            [piece[k] for k in part]
            for piece in by_length(lengths, 2 * self.config.batch_size)
            for part in micro_batches([lengths[k] for k in piece], [1] * len(piece), self._limit)
        ]

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        return self.model.forward_logprobs(*pad(rows, self.model.pad_id).to(self._device))

    def _check_finite(self, what: str, value: Tensor, adapter: str, step: int) -> None:
        if not bool(value.isfinite()):
            raise LearningError(
                f"adapter '{adapter}', step {step + 1} of {self.config.steps}, method "
                f"'{self.config.method}': the {what} is {float(value)}. The adapter was restored "
                f"to the weights before this update. Lower lr (it was {self.config.rate(step):g}), "
                "and look for inputs that are not numbers"
            )


class _Progress:
    """Figures of the steps so far."""

    def __init__(self) -> None:
        self.losses, self.hits = list[float](), list[float]()
        self.parts = self.largest = 0
        self.peak_mb: float | None = None

    def note(self, tokens: int, memory_mb: float | None) -> None:
        """Record one forward, and the memory in use after it."""
        self.parts += 1
        self.largest = max(self.largest, tokens)
        if memory_mb is not None:
            self.peak_mb = max(self.peak_mb or 0.0, memory_mb)


@contextmanager
def _restored_on_error(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Restore the parameters if the block ends in a :class:`LearningError`."""
    before = [p.detach().clone() for p in parameters]
    try:
        yield
    except LearningError:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)
        raise


def _encoded(
    model: Trainable,
    examples: Sequence[PreferencePair] | Sequence[ScoredReply],
    settings: UpdateConfig,
    adapter: str,
) -> list[Example]:
    wanted = ScoredReply if settings.method == "pg" else PreferencePair
    wrong = next((e for e in examples if not isinstance(e, wanted)), None)
    if wrong is not None:
        raise ConfigError(
            f"method '{settings.method}' learns from {wanted.__name__}, got {type(wrong).__name__}"
        )
    unparsed = settings.unparsed
    if unparsed is None:
        unparsed = getattr(model, "encodes_text", False)
    if settings.method == "pg":
        replies = [e for e in examples if isinstance(e, ScoredReply)]
        return encode_replies(model, replies, unparsed=unparsed, adapter=adapter)
    pairs = [e for e in examples if isinstance(e, PreferencePair)]
    both, unique = settings.method != "rft", settings.unique
    return encode_pairs(model, pairs, both=both, unique=unique, unparsed=unparsed, adapter=adapter)


def _quarter(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Means of the last and of the first quarter."""
    size = max(1, len(values) // 4)
    return (sum(values[-size:]) / size, sum(values[:size]) / size) if values else (None, None)
