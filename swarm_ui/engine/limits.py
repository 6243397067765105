"""Limits of a run: time, concurrency, and what happens when a node fails."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.errors import ConfigError


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time, concurrency and the failure policy of a run.

    Raises:
        ConfigError: a number is out of range.
    """

    timeout: float | None = None
    """Seconds for one call, once it has a slot; a node's own ``timeout`` has precedence. A nested
    graph is not one call: its calls are timed one by one. ``None``: no limit."""
    run_timeout: float | None = None
    """Seconds for the whole run. After that, agents that have not answered fail, as by
    ``on_failure``; with tombstones the votes still count all received messages.
    ``None``: no limit."""
    concurrency: int | None = None
    """Calls of one run at the same time, those in nested graphs too; ``None``: no limit."""
    on_failure: Literal["tombstone", "abort"] = "tombstone"
    """Effect of the failure of a node without a fallback. ``tombstone``: successors see a message
    with an ``error``, and the run raises ``RunFailed`` at its end if no node succeeded. ``abort``:
    the run raises ``NodeError`` at the first failure."""

    def __post_init__(self) -> None:
        for name, seconds in (("timeout", self.timeout), ("run_timeout", self.run_timeout)):
            if seconds is not None and not seconds > 0:
                raise ConfigError(f"Limits: {name} must be > 0 seconds or None, got {seconds}")
        if self.concurrency is not None and self.concurrency < 1:
            raise ConfigError(
                f"Limits: concurrency must be at least 1 or None, got {self.concurrency}"
            )
