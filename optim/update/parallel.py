"""Data-parallel training in several processes, which average their gradients after every step.

On a CPU a second thread does not make the training of a tiny network faster, and a second process
makes it almost twice as fast.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import distributed, multiprocessing, nn

Argument = TypeVar("Argument")


def run(work: Callable[[int, Argument], None], argument: Argument, *, processes: int) -> None:
    """Call ``work(rank, argument)`` in several processes that can average gradients.

    ``work`` and ``argument`` must be picklable. With one process, ``work`` is called directly.

    Raises:
        torch.multiprocessing.ProcessRaisedException: a process failed; the others are ended.
    """
    if processes == 1:
        work(0, argument)
        return
    multiprocessing.spawn(  # type: ignore[no-untyped-call, attr-defined]
        _member, args=(work, argument, processes, _free_port()), nprocs=processes
    )


def average_gradients(network: nn.Module) -> None:
    """Replace every gradient by its mean over the processes, if there are several."""
    if not distributed.is_initialized():
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = torch.cat([g.flatten() for g in gradients])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    at = 0
    for gradient in gradients:
        gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
        at += gradient.numel()


def _member(
    rank: int, work: Callable[[int, Argument], None], argument: Argument, size: int, port: int
) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size
    )
    try:
        work(rank, argument)
    finally:
        distributed.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
