"""Processes that are made to be killed: forks of that of the tests, which has imported what they
need, so that one costs milliseconds."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path


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
