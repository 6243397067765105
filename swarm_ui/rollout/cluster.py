"""A Ray cluster: connecting to one or starting one here, and what a worker needs of it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError, MissingExtra, brief

Amount = Annotated[float, Meta(ge=0.0)]
_SLACK = 1e-9


class WorkerResources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that Ray reserves for a worker. Ray only counts them and limits no usage."""

    cpus: Amount = 1.0
    gpus: Amount = 0.0
    """May be a fraction, for several workers on one GPU."""
    custom: dict[str, Amount] = {}
    """Custom resources, such as ``{"emulator": 1}``; a node declares its own with ``ray start
    --resources='{"emulator": 4}'``."""

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts above 0, by Ray's names."""
        every = {"CPU": self.cpus, "GPU": self.gpus, **self.custom}
        return {name: amount for name, amount in every.items() if amount > 0}

    def fits(self, nodes: Iterable[Mapping[str, float]]) -> int:
        """The number of workers for which nodes have room; each is on one node.

        ``nodes``: the resources of each node, by Ray's names.
        """
        needs = self.amounts.items()
        return sum(
            min((int(node.get(name, 0.0) / amount + _SLACK) for name, amount in needs), default=1)
            for node in nodes
        )

    def __str__(self) -> str:
        return listed(self.amounts)


CONNECT = 10.0
"""Seconds in which the head of a cluster has to answer."""
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


@contextmanager
def ray_cluster(
    address: str = "",
    *,
    cpus: int | None = None,
    gpus: int | None = None,
    resources: Mapping[str, float] | None = None,
) -> Iterator[str]:
    """A running cluster by its address, or one on this machine that is stopped at the end.

    If this process is connected already, its cluster is used and stays running. Yields the address
    of the cluster.

    Args:
        address: ``HOST:PORT``; empty: the variable ``RAY_ADDRESS``, or else a local cluster.
        cpus, gpus, resources: what the local cluster has; by default what Ray finds.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: no cluster answers there, or its version of Ray or Python differs.
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
            "address": "local", "num_cpus": cpus, "num_gpus": gpus,
            "resources": dict(resources or {}) or None, "include_dashboard": False,
        }  # fmt: skip
    else:
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
    if address == "auto":
        return
    if "://" in address or not host or not port.isdecimal():
        raise ConfigError(f"'{address}' is not the address of a Ray cluster. {_EXPECTED}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address}: {reason(error)}. {_EXPECTED}"
        ) from error


def imported(needed_for: str = "a cluster") -> Any:
    """The module ``ray``. Raises ``MissingExtra`` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", needed_for, error.name or "ray") from error
    return ray


def connected(needed_for: str) -> Any:
    """The module ``ray``, connected to a cluster.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: this process is not connected to a cluster.
    """
    ray = imported(needed_for)
    if not ray.is_initialized():
        raise ConfigError(
            f"{needed_for} needs a Ray cluster, and this process is not connected to one. "
            "Use it inside: with ray_cluster(): (swarm_ui.rollout), or after ray.init()"
        )
    return ray


def node_resources() -> list[dict[str, float]]:
    """The resources of each node of the connected cluster that is alive, by Ray's names."""
    return [dict(node["Resources"]) for node in imported().nodes() if node["Alive"]]


def listed(amounts: Mapping[str, float]) -> str:
    """Resources in words."""
    return ", ".join(f"{name} {amount:g}" for name, amount in amounts.items()) or "nothing"


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RAISED = re.compile(r"[\w.]*(Error|Exception|Failure)\b.*: ")
"""The line of a traceback that names the exception."""


def reason(error: BaseException) -> str:
    """The reason that Ray gives for a failure, in one line; of a traceback, only the last
    exception."""
    lines = [_COLOUR.sub("", line).strip() for line in str(error).splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    told = raised[-1] if raised else " ".join(filter(None, lines))
    return brief(Exception(told or type(error).__name__), most=250)
