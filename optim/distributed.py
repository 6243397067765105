"""Updates in the processes of ``accelerate launch``, which run the same program.

The first process plays the episodes, makes the examples and saves the run. Each process computes
its share of every batch, and the sum of their gradients is the gradient of the batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from swarm_ui.errors import LearningError, MissingExtra

if TYPE_CHECKING:
    from accelerate import PartialState  # type: ignore[import-untyped]

_PATIENCE = timedelta(days=30)
"""The others wait while the first process plays. One that died is noticed by its connections."""


def launched() -> int:
    """The number of processes that a launcher such as ``accelerate launch`` started; else 1."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


class LostProcess(LearningError):
    """The connection to another process of the training was lost."""


class Processes:
    """A process group. Every method that communicates is called by all processes together, and
    raises :class:`LostProcess` if one of them ended."""

    lost = False
    """Whether the connection to another process is lost, or this one left an update early."""
    _ended = False

    def __init__(self, state: PartialState) -> None:
        self.rank: int = state.process_index
        """The number of this process, from 0. The first one decides what is done."""
        self.size: int = state.num_processes
        self.local_rank: int = max(0, state.local_process_index)
        """The number of this process on its machine."""

    @classmethod
    def join(cls) -> Processes:
        """Join the processes of the launcher. Raises ``MissingExtra`` without accelerate."""
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

    def end(self) -> None:
        """Let the other processes end; only the first one does it, and only once."""
        if self.rank == 0 and not self.lost and not self._ended:
            self._ended = True
            with suppress(LostProcess):
                self.send(b"")

    def part(self) -> slice:
        """The examples of a batch that this process computes, perhaps none. Neighbours have similar
        lengths, so each process gets every ``size``-th one."""
        return slice(self.rank, None, self.size)

    def send(self, message: bytes | None) -> bytes:
        """Give every process the message of the first one; the others pass ``None``."""
        from accelerate.utils import broadcast_object_list  # type: ignore[import-untyped]

        with self._connected():
            return bytes(broadcast_object_list([message])[0])

    @torch.no_grad()
    def copy(self, parameters: Sequence[nn.Parameter]) -> None:
        """Give all processes the weights of the first one."""
        from accelerate.utils import broadcast

        with self._connected():
            flat = broadcast(parameters_to_vector(parameters), from_process=0)
        for p, values in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.copy_(values.view_as(p))

    def sum_gradients(self, parameters: Sequence[nn.Parameter], loss: float) -> float:
        """Replace the gradients by their sums over all processes; returns that of the losses."""
        from accelerate.utils import reduce

        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = parameters_to_vector(grads)
        with self._connected():
            total: Tensor = reduce(torch.cat([flat, flat.new_tensor([loss])]), "sum")
        vector_to_parameters(total[:-1], grads)
        return float(total[-1])

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, NotImplementedError | RecursionError):
                raise
            self.lost = True
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise LostProcess(
                f"process {self.rank + 1} of {self.size}: the connection to the other processes is "
                f"lost ({said:.200}). One of them ended; see its error above, if it printed one"
            ) from error
