"""Training runs in forked processes that are made to be killed.

The process of the tests is forked itself: torch is imported there already, so that a child costs
milliseconds.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from learning_fakes import TinyModel
from learning_run import CONFIG, run

from swarm_ui.optim.config import TeamConfig, UpdateConfig


class Child:
    """A process that does one thing, and what became of it."""

    def __init__(self, work: Callable[[], None], stderr: Path | None = None) -> None:
        """``stderr``: the file for what the child says of an error; default: nowhere."""
        with warnings.catch_warnings():
            # Later Pythons warn because a thread of the test runner may hold a lock. The child
            # shares no lock with it: it trains and ends without running anything of the runner's.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._id = os.fork()
        if self._id == 0:
            status = 1
            try:
                sys.stderr = (stderr or Path(os.devnull)).open("w")
                work()
                status = 0
            finally:
                if status:
                    traceback.print_exc()
                    sys.stderr.flush()
                os._exit(status)

    def kill(self) -> int:
        """Kill it with SIGKILL; returns how it ended, which may be otherwise and before."""
        os.kill(self._id, signal.SIGKILL)  # not waited for yet, so the number is still its own
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; returns its exit code, or minus the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self._id, 0)[1])


def config(seed: int) -> TeamConfig:
    """Twelve iterations of a few hundredths of a second."""
    return dataclasses.replace(
        CONFIG, seed=seed, iterations=12, shared_iterations=4, episodes=6,
        update=UpdateConfig(method="dpo", steps=4, batch_size=8, lr=5e-2),
    )  # fmt: skip


def train(seed: int, folder: Path, largest: int = 0) -> None:
    """Train the team of a seed in ``folder/run``, from wherever it stands.

    ``folder/adapters`` is there once all is done. No file may grow over ``largest`` bytes, as on a
    disk that is full (0: any size).
    """
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    model = TinyModel()
    # Of so few episodes, none may be solved in an iteration.
    run(model, folder / "run", resume=True, config=config(seed), warn=lambda _: None)
    model.save_adapters(folder / "adapters.part")
    (folder / "adapters.part").rename(folder / "adapters")
