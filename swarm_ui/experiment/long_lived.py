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

    PyTorch and transformers create a million objects. The garbage collector would examine them
    again and again, which took a tenth of the CPU time of rollouts. Objects that exist when the
    context ends are exempt from garbage collection, and the collector runs less often from then on.
    Use it in programs, not in libraries, because it changes the whole process.
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
