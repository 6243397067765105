"""For tests that press Ctrl-C in a child process."""

from __future__ import annotations

import signal


def hear_ctrl_c() -> None:
    """A ``preexec_fn``: what a shell runs in the background inherits that Ctrl-C is ignored, and
    so would the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
