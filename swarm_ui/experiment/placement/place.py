"""The setting ``[run] on``: this process, a local Ray cluster, or a running one."""

from __future__ import annotations

from collections.abc import Iterator

from swarm_ui.experiment.config import Config, Finding

LOCAL, RAY = "local", "ray"


def on_ray(config: Config) -> bool:
    """Whether the episodes are played in workers of a Ray cluster."""
    return config.run.on.partition(":")[0] == RAY


def ray_address(config: Config) -> str:
    """The address of the cluster; empty: ``RAY_ADDRESS``, or else a local one."""
    return config.run.on.partition(":")[2]


def place_findings(config: Config) -> Iterator[Finding]:
    """Mistakes in the choice of the place."""
    on = config.run.on
    word, colon, address = on.partition(":")
    if on in ("", LOCAL):
        return
    if word != RAY or (colon and not address):
        problem = f"'{on}': expected {LOCAL}, {RAY} or {RAY}:HOST:PORT"
        yield ("run", "on"), problem
    elif address.startswith("//"):
        problem = (
            f"'{on}' is an address of the Ray Client, which cannot be used; run this command on a "
            "node of the cluster, with ray:HOST:6379"
        )
        yield ("run", "on"), problem
