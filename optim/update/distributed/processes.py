"""The processes of a training, through accelerate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from swarm_ui.errors import LearningError, MissingExtra

if TYPE_CHECKING:
    from accelerate import PartialState  # type: ignore[import-untyped]

_PATIENCE = timedelta(days=30)
"""The other processes wait while the first one plays the episodes of an iteration. A process that
died is noticed by its closed connections, not by this limit."""


def launched() -> int:
    """The number of processes that a launcher such as ``accelerate launch`` started; else 1."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


class LostProcess(LearningError):
    """The connection to another process of the training was lost."""


class Processes:
    """A process group. Every method that communicates is called by all processes together, and
    raises :class:`LostProcess` if one of them ended.
    """

    sharded = False
    """Whether each process holds only a part of the base model, see
    :mod:`swarm_ui.optim.update.distributed.sharded_base`."""

    lost = False
    """Whether the connection to another process is lost."""

    def __init__(self, state: PartialState) -> None:
        self.rank: int = state.process_index
        """The number of this process, from 0. The first one decides what is done."""
        self.size: int = state.num_processes
        self.local_rank: int = max(0, state.local_process_index)
        """The number of this process on its machine."""
        self.device: torch.device = state.device

    @classmethod
    def join(cls) -> Processes:
        """Wait for the processes of the launcher, and join them.

        Raises:
            MissingExtra: accelerate is not installed.
        """
        try:
            from accelerate import PartialState
        except ImportError as error:
            raise MissingExtra("train", "training in several processes", "accelerate") from error
        # Imported later, its default arguments would hold the group beyond `leave`, and gloo's
        # threads, which release tensors, would abort the interpreter that is ending.
        import torch.distributed.nn.functional

        # Weights may be on a CPU also where there are GPUs, so that both kinds of tensors travel.
        mixed = {"backend": "cuda:nccl,cpu:gloo"} if torch.cuda.is_available() else {}
        cpu = not torch.accelerator.is_available()
        return cls(PartialState(cpu=cpu, timeout=_PATIENCE, **mixed))

    def leave(self) -> None:
        """Leave the group at the end of the process; does nothing if it is broken."""
        if not self.lost:
            torch.distributed.destroy_process_group()

    @property
    def leads(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    def share(self, count: int, rank: int | None = None) -> range:
        """The rows, of ``count``, that the process ``rank`` computes; ``None``: this process.

        Shares differ by at most one row and may be empty. Neighbours in a batch have similar
        lengths, so every process gets each ``size``-th row.
        """
        return range(self.rank if rank is None else rank, count, self.size)

    def send(self, message: bytes | None) -> bytes:
        """Give every process the message of the first one; the others pass ``None``."""
        from accelerate.utils import broadcast_object_list  # type: ignore[import-untyped]

        with self._connected():
            return bytes(broadcast_object_list([message])[0])

    def gather(self, message: bytes) -> list[bytes]:
        """The messages of all processes, by their numbers."""
        from accelerate.utils import gather_object

        with self._connected():
            return [bytes(each) for each in gather_object([message])]

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes; ``values`` has the same shape in each."""
        from accelerate.utils import reduce

        with self._connected():
            total: Tensor = reduce(values, "sum")
        return total

    def copy(self, values: Tensor, source: int) -> Tensor:
        """The values of the process ``source``; ``values`` has the same shape in each."""
        from accelerate.utils import broadcast

        with self._connected():
            same: Tensor = broadcast(values, from_process=source)
        return same

    def sum_gradients(self, parameters: Sequence[nn.Parameter], more: Tensor) -> Tensor:
        """Replace the gradients by their sums over all processes.

        Losses are divided by totals of the whole batch, so the sum is the gradient of the batch,
        also if the processes have unequal parts of it.

        Args:
            parameters: the same in each process; a missing gradient counts as zeros.
            more: one-dimensional numbers to add up in the same message.

        Returns:
            The sums of ``more``.
        """
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([g.reshape(-1) for g in grads])
        flat = flat.to(torch.promote_types(flat.dtype, torch.float32))
        flat = self.sum(torch.cat([flat, more.to(flat)]))
        *found, rest = torch.split(flat, [*(g.numel() for g in grads), len(more)])
        for parameter, grad, part in zip(parameters, grads, found, strict=True):
            parameter.grad = part.view_as(grad).to(grad.dtype)
        return rest.to(more)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, NotImplementedError | RecursionError):
                raise
            self.lost = True
            # Such as "[.../pair.cc:553] Connection closed by peer [127.0.0.1]:26025. This is ..."
            said = re.sub(r"^\[[^\]]*\]\s*", "", str(error).strip()).partition(". ")[0]
            raise LostProcess(
                f"process {self.rank + 1} of {self.size}: the connection to the other processes is "
                f"lost ({said.splitlines()[0] if said else type(error).__name__}). One of them "
                "ended; see its error above, if it printed one"
            ) from error


@torch.no_grad()
def assign(parameters: Sequence[nn.Parameter], values: Tensor) -> None:
    """Set all weights to those of a vector of torch's ``parameters_to_vector``. Unlike
    ``vector_to_parameters``, this changes them in place, which models notice."""
    parts = torch.split(values, [p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))
