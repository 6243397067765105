"""Data-parallel training in several processes, which average their gradients after every step.

On a CPU, a second thread does not make the training of a tiny network faster, but a second process
makes it almost twice as fast.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import distributed, multiprocessing, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

Argument = TypeVar("Argument")


def run(work: Callable[[int, Argument], None], argument: Argument, *, processes: int) -> None:
    """Call ``work(rank, argument)`` in several processes that can average gradients.

    ``work`` and ``argument`` must be picklable. With one process, ``work`` is called directly.

    Raises:
        torch.multiprocessing.ProcessRaisedException: a process failed; the others are terminated.
    """
    if processes == 1:
        work(0, argument)
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "processes").as_uri()
        multiprocessing.spawn(  # type: ignore[no-untyped-call, attr-defined]
            _member, args=(work, argument, processes, meeting), nprocs=processes
        )


def average_gradients(network: nn.Module) -> None:
    """Replace every gradient by its mean over the processes, if there are several."""
    if not distributed.is_initialized():
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = parameters_to_vector(gradients)
    distributed.all_reduce(flat)
    vector_to_parameters(flat / distributed.get_world_size(), gradients)


def _member(
    rank: int, work: Callable[[int, Argument], None], argument: Argument, size: int, meeting: str
) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    try:
        work(rank, argument)
    finally:
        distributed.destroy_process_group()
