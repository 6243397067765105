"""Imports without their cost for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 20_000
"""Number of new objects after which the garbage collector runs; Python's default is 700. The traces
of a batch of episodes are hundreds of thousands of objects, and almost all are freed without the
collector."""


@contextmanager
def long_lived() -> Iterator[None]:
    """A context for imports and other work whose objects live until the process ends.

    PyTorch and transformers are a million objects, which the collector would look through again and
    again: a tenth of the CPU time of rollouts. What exists when the context ends is exempt from
    garbage collection, and from then on it takes place less often. For programs, not for libraries:
    the setting is that of the process.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        young, *older = gc.get_threshold()
        gc.set_threshold(max(young, _YOUNG), *older)
        if enabled:
            gc.enable()
