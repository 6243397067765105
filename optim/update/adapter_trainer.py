"""Training one LoRA adapter on preference pairs or scored replies, for a number of updates."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import torch
from torch import Tensor, nn

from swarm_ui.errors import LearningError
from swarm_ui.node import derive
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_task import AdapterTask, Examples, adapter_task
from swarm_ui.optim.update.batches import Example
from swarm_ui.optim.update.distributed.processes import Processes
from swarm_ui.optim.update.forward import Forwards
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
    """Statistics of one update of an adapter."""

    adapter: str
    pairs: int
    """Number of usable pairs."""
    steps: int
    loss: float | None
    """Mean loss over the last quarter of the steps; ``None`` if there were no steps."""
    first_loss: float | None
    """Mean loss over the first quarter of the steps."""
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
    process: int | None = None
    """The process that trained the adapter, counted from 0; ``None``: there was only one process,
    or all of them trained it together; the statistics are then those of the first."""


class AdapterTrainer:
    """Updates adapters of one :class:`~swarm_ui.optim.protocols.Trainable`."""

    def __init__(
        self,
        model: Trainable,
        config: UpdateConfig | None = None,
        processes: Processes | None = None,
    ) -> None:
        """
        Args:
            model: holds the adapters.
            config: settings that are not set get the defaults of the model.
            processes: share every batch and add up their gradients. All of them make the same
                updates at the same time; ``None``: this process computes alone.
        """
        self.model, self._processes = model, processes
        defaults = defaults_of(model)
        self.config = (config or UpdateConfig()).filled(defaults)
        limit = self.config.micro_batch_tokens or defaults.micro_batch_tokens
        self._forwards = Forwards(model, self.config, limit, processes)
        self._device = next(model.module.parameters()).device

    def fit(self, adapter: str, examples: Examples, rng: random.Random) -> UpdateStats:
        """Train ``adapter`` in place and raise its version. Other adapters do not change.

        Args:
            examples: pairs, or scored replies for ``pg``. From a pair without a rejected reply,
                only the likelihood of the chosen one is learned.
            rng: draws the batches. Equal states give equal weights.

        Raises:
            LearningError: a loss or a gradient was not a number. The adapter is restored, as
                after any other exception.
        """
        return self.train(self.prepare(adapter, examples, rng))

    def prepare(
        self,
        adapter: str,
        examples: Examples,
        rng: random.Random,
    ) -> AdapterTask:
        """The update that :meth:`fit` would make with these arguments."""
        return adapter_task(self.model, self.config, adapter, examples, rng)

    def train(self, task: AdapterTask, check: Callable[[], None] | None = None) -> UpdateStats:
        """Make an update; see :meth:`fit`. With several processes, each of them calls this.

        ``check`` is called before each step; what it raises ends the update.
        """
        began = (time.perf_counter(), time.process_time())
        done = _Progress()
        if task.batches:
            with training_mode(self.model.module, self.config):
                references = self._forwards.references(task)
                # Dropout draws from torch's global stream, so that is seeded inside.
                with torch.random.fork_rng(devices=[]), self.model.activate(task.adapter):
                    torch.manual_seed(self._dropout_seed(task))
                    with _restored_on_error(self.model.adapter_parameters(task.adapter)):
                        self._loop(task, references, done, check)
            self.model.bump(task.adapter)
        last, first = _quarter(done.losses)
        return UpdateStats(
            adapter=task.adapter,
            pairs=len(task.examples),
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
        task: AdapterTask,
        references: Tensor | None,
        done: _Progress,
        check: Callable[[], None] | None,
    ) -> None:
        settings = self.config
        parameters = self.model.adapter_parameters(task.adapter)
        optimizer = torch.optim.AdamW(
            parameters, lr=known(settings.lr, "lr"), betas=settings.betas, weight_decay=0.0
        )
        for step, rows in enumerate(task.batches):
            if check is not None:
                check()
            optimizer.zero_grad()
            batch = [task.examples[row] for row in rows]
            compared = None if references is None else references[:, list(rows)]
            sums = self._accumulate(batch, compared, done)
            if self._processes is not None:
                sums = self._processes.sum_gradients(parameters, sums)
            loss, right, pairs = sums.tolist()
            self._check_finite("loss", sums[0], task.adapter, step)
            norm = nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            self._check_finite("gradient's norm", norm, task.adapter, step)
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            optimizer.step()
            done.losses.append(loss)
            done.hits += [right / pairs] if pairs else []

    def _accumulate(
        self, batch: Sequence[Example], references: Tensor | None, done: _Progress
    ) -> Tensor:
        """Add up the gradients of this process's part of a batch, one micro-batch after another.

        Returns:
            ``[3]`` in float64: the loss, the number of pairs whose margin is above 0, and the
            number of pairs. The sums over all processes are those of the whole batch.
        """
        totals, losses, hits = Totals.of(batch), list[float](), list[float]()
        for part in self._forwards.parts(batch):
            if not part:  # others compute, and a sharded model needs every process
                nothing = 0.0 * self._forwards([batch[0].chosen])[0].sum()
                nothing.backward()  # type: ignore[no-untyped-call]
                continue
            compared = None if references is None else references[:, part]
            examples = [batch[k] for k in part]
            loss, right = part_loss(self._forwards, examples, totals, self.config, compared)
            done.note(sum(each.sides for each in examples) * max(each.longest for each in examples),
                      memory_in_use_mb(self._device))  # fmt: skip
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(float(loss.detach()))
            hits += right
        return torch.tensor([sum(losses), sum(hits), len(hits)], dtype=torch.float64)

    def _dropout_seed(self, task: AdapterTask) -> int:
        """The seed of dropout in this process. The first process has the seed that a single process
        would have."""
        rank = 0 if self._processes is None else self._processes.rank
        return derive(task.seed, "process", rank) if rank else task.seed

    def _check_finite(self, what: str, value: Tensor, adapter: str, step: int) -> None:
        if not bool(value.isfinite()):
            raise LearningError(
                f"adapter '{adapter}', step {step + 1} of {self.config.steps}, method "
                f"'{self.config.method}': the {what} is {float(value)}. The adapter was restored "
                f"to the weights before this update. Lower lr (it was {self.config.rate(step):g}), "
                "and look for inputs that are not numbers"
            )


class _Progress:
    """Losses, accuracy and memory of the steps so far."""

    def __init__(self) -> None:
        self.losses, self.hits = list[float](), list[float]()
        self.parts = self.largest = 0
        self.peak_mb: float | None = None

    def note(self, tokens: int, memory_mb: float | None) -> None:
        """Record the tokens of one forward pass, and the memory in use after it."""
        self.parts += 1
        self.largest = max(self.largest, tokens)
        if memory_mb is not None:
            self.peak_mb = max(self.peak_mb or 0.0, memory_mb)


@contextmanager
def _restored_on_error(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Restore the parameters if the block does not end."""
    before = [p.detach().clone() for p in parameters]
    try:
        yield
    except BaseException:  # re-raised
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)
        raise


def _quarter(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean of the last quarter of the values, and the mean of the first quarter."""
    size = max(1, len(values) // 4)
    return (sum(values[-size:]) / size, sum(values[:size]) / size) if values else (None, None)
