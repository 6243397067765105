"""Process groups of forked children, which share what the tests have imported.

Each child joins the group as a process of ``accelerate launch`` does: by its environment.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from accelerate.state import AcceleratorState  # type: ignore[import-untyped]  # imported before the fork
from forked import Child

from swarm_ui.optim.distributed import Processes

Work = Callable[[Processes], None]


def _reserved_port() -> int:
    """A port that no other program gets until this one ends. Nobody listens on it, so that the
    first process of each group can."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", 0))
    port = int(made.getsockname()[1])
    made.detach()  # it stays open
    return port


_PORT = _reserved_port()


def started(works: Sequence[Work], folder: Path) -> list[Child]:
    """One process for each piece of work. ``folder/stderr-RANK`` gets the errors of each."""
    torch.set_num_threads(1)  # threads do not survive a fork
    folder.mkdir(parents=True, exist_ok=True)

    def child(rank: int, work: Work) -> Callable[[], None]:
        def run() -> None:
            os.environ |= {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(works)),
                "LOCAL_WORLD_SIZE": str(len(works)), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(_PORT), "OMP_NUM_THREADS": "1",
            }  # fmt: skip
            # What an earlier test of this process has set up counts as a group of one.
            AcceleratorState._reset_state(reset_partial_state=True)
            work(Processes.join())
            sys.stderr.flush()

        return run

    return [Child(child(rank, work), folder / f"stderr-{rank}") for rank, work in enumerate(works)]


def in_processes(works: Sequence[Work], folder: Path) -> None:
    """Let all processes do their work; fails with their errors if one does not succeed."""
    codes = [child.wait() for child in started(works, folder)]
    errors = [(folder / f"stderr-{rank}").read_text()[-3000:] for rank in range(len(works))]
    assert codes == [0] * len(works), "\n".join(errors)
