"""Process groups of forked children, which share what the tests have imported.

Each child joins the group as a process of ``accelerate launch`` does: by its environment.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import accelerate  # type: ignore[import-untyped]  # noqa: F401  imported once, before the fork
import torch
from trainer_child import Child

from swarm_ui.optim.update.distributed.processes import Processes

Work = Callable[[Processes], None]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(works: Sequence[Work], folder: Path) -> list[Child]:
    """One process for each piece of work. ``folder/stderr-RANK`` gets the errors of each."""
    torch.set_num_threads(1)  # threads do not survive a fork
    port = str(free_port())
    folder.mkdir(parents=True, exist_ok=True)

    def child(rank: int, work: Work) -> Callable[[], None]:
        def run() -> None:
            os.environ |= {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(works)),
                "LOCAL_WORLD_SIZE": str(len(works)), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port, "OMP_NUM_THREADS": "1",
            }  # fmt: skip
            work(Processes.join())
            sys.stderr.flush()

        return run

    return [Child(child(rank, work), folder / f"stderr-{rank}") for rank, work in enumerate(works)]


def in_processes(works: Sequence[Work], folder: Path) -> None:
    """Let all processes do their work; fails with their errors if one does not succeed."""
    codes = [child.wait() for child in started(works, folder)]
    errors = [(folder / f"stderr-{rank}").read_text()[-3000:] for rank in range(len(works))]
    assert codes == [0] * len(works), "\n".join(errors)
