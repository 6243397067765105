"""A Ray cluster: connecting to one or starting one here, and what it has room for."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra, brief

CONNECT = 10.0
"""Seconds in which the head of a cluster has to answer."""
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


@contextmanager
def ray_cluster(
    address: str = "",
    *,
    cpus: int | None = None,
    resources: Mapping[str, float] | None = None,
) -> Iterator[str]:
    """A running cluster by its address, or one on this machine that is stopped at the end.

    If this process is connected already, its cluster is used and stays running. Yields the address
    of the cluster.

    Args:
        address: ``HOST:PORT``; empty: the variable ``RAY_ADDRESS``, or else a local cluster.
        cpus, resources: what the local cluster has; by default what Ray finds.

    Raises ``MissingExtra`` without Ray, and ``ConfigError`` if no cluster answers there, or its
    version of Ray or Python differs.
    """
    ray = imported()
    if ray.is_initialized():
        yield ray.get_runtime_context().gcs_address
        return
    address = address or os.environ.get("RAY_ADDRESS", "")
    here = address in ("", "local")
    settings: dict[str, Any] = {"address": address}
    if here:
        # Ray reports the usage of clusters to its authors, unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings = {
            "address": "local", "num_cpus": cpus, "resources": dict(resources or {}) or None,
            "include_dashboard": False,
        }  # fmt: skip
    else:
        if address != "auto":
            _expect_listening(address)
    try:
        ray.init(**settings, **_QUIET)
    except Exception as error:  # Ray raises plain ones when its processes start too slowly
        ray.shutdown()
        told = f"no Ray cluster that can be used at {address}: {reason(error)}. {_EXPECTED}"
        if here:
            told = f"no Ray cluster could be started here: {reason(error)}"
        raise ConfigError(told) from error
    # Keep Ray's messages about lost workers off standard output, which belongs to the program. Ray
    # has no public setting for it.
    from ray._private import worker

    worker._worker_logs_enabled = False  # type: ignore[attr-defined, unused-ignore]
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        worker._worker_logs_enabled = True  # type: ignore[attr-defined, unused-ignore]
        ray.shutdown()


_EXPECTED = (
    "Expected HOST:PORT of a running head, as 'ray start --head' prints it, with the same versions "
    "of Ray and Python as here"
)


def _expect_listening(address: str) -> None:
    """Raise ``ConfigError`` if nothing listens there, for which Ray itself would wait minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except (OSError, OverflowError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at '{address}': {reason(error)}. {_EXPECTED}"
        ) from error


def imported(needed_for: str = "a cluster") -> Any:
    """The module ``ray``. Raises ``MissingExtra`` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", needed_for, error.name or "ray") from error
    return ray


def connected(needed_for: str) -> Any:
    """The module ``ray``; raises ``ConfigError`` if this process is not connected to a cluster."""
    ray = imported(needed_for)
    if not ray.is_initialized():
        raise ConfigError(
            f"{needed_for} needs a Ray cluster, and this process is not connected to one. "
            "Use it inside: with ray_cluster(): (swarm_ui.rollout), or after ray.init()"
        )
    return ray


def room_for(needs: Mapping[str, float]) -> int:
    """The number of workers for which the connected cluster has room, at least 1.

    ``needs``: the resources of a worker, by Ray's names.
    """
    there, wanted = imported().cluster_resources(), {k: n for k, n in needs.items() if n > 0}
    fitting = (int(there.get(name, 0.0) / n + 1e-9) for name, n in wanted.items())
    return max(1, min(fitting, default=1))


def missing(number: int, needs: Mapping[str, float]) -> str:
    """A description of the resources that the connected cluster lacks for a worker."""
    ray = imported()
    there, free = ray.cluster_resources(), ray.available_resources()
    listed = ", ".join(
        f"{name} {n:g} (the cluster has {there.get(name, 0.0):g}, free {free.get(name, 0.0):g})"
        for name, n in needs.items()
    )
    return (
        f"worker {number} waits for resources: it needs {listed} on one node. A node says what it "
        "has with: ray start --resources='{\"NAME\": COUNT}'"
    )


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RAISED = re.compile(r"[\w.]*(Error|Exception|Failure)\b.*: ")
"""The line of a traceback that names the exception."""


def reason(error: BaseException) -> str:
    """The reason that Ray gives for a failure, in one line; of a traceback, only the last
    exception."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    told = raised[-1] if raised else " ".join(filter(None, lines))
    return brief(Exception(told or type(error).__name__), most=250)
