"""Connecting to a Ray cluster, or starting one on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A cluster that this process is connected to."""

    address: str
    """``HOST:PORT`` of its head."""
    local: bool
    """It was started by this process, and ends with it."""

    def nodes(self) -> list[dict[str, float]]:
        """The resources of each node that is alive, by Ray's names."""
        raise NotImplementedError


@contextmanager
def ray_cluster(
    address: str = "",
    *,
    cpus: int | None = None,
    gpus: int | None = None,
    resources: Mapping[str, float] | None = None,
) -> Iterator[RayCluster]:
    """A running cluster by its address, or one on this machine that is stopped at the end.

    If this process is connected already, its cluster is used and left as it is.

    Args:
        address: ``HOST:PORT``; empty: the variable ``RAY_ADDRESS``, or else a local cluster.
        cpus, gpus, resources: what the local cluster has; by default what Ray finds.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: no cluster answers there, or its Ray or Python has another version.
    """
    raise NotImplementedError
    yield
