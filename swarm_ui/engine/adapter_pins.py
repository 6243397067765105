"""Adapter versions that stay the same during an episode, even if newer ones are loaded.

A run of a graph leases the versions of its adapters (:mod:`swarm_ui.engine.session`). An
episode has many runs, one for each decision. Inside :func:`same_versions`, the versions of the
first run stay leased, and later runs use them too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from swarm_ui.model import VersionedModel

_Pins = dict[tuple[int, str], tuple[VersionedModel, str]]
_PINS: ContextVar[_Pins | None] = ContextVar("adapter pins", default=None)
"""The versions of one episode, by model and adapter."""


@contextmanager
def same_versions() -> Iterator[None]:
    """In this context, and in tasks started in it, all runs use the adapter versions of the first
    run that requests them. A nested context has no effect."""
    if _PINS.get() is not None:
        yield
        return
    pins: _Pins = {}
    token = _PINS.set(pins)
    try:
        yield
    finally:
        _PINS.reset(token)
        for model, version in pins.values():
            model.release(version)


def lease(model: VersionedModel, adapter: str) -> str:
    """Lease the version of an adapter that this context uses; outside a context, its current
    version. Raises ``ModelError`` as :meth:`~swarm_ui.model.VersionedModel.lease` does."""
    pins = _PINS.get()
    if pins is None:
        return model.lease(adapter)
    key = id(model), adapter
    if key not in pins:
        pins[key] = model, model.lease(adapter)
    return model.lease(pins[key][1])
