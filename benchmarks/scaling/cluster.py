"""A cluster of several nodes on this machine, whose workers need no CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from swarm_ui.rollout import WorkerResources

PLACE = WorkerResources(cpus=0.0, custom={"place": 1.0})
"""What a worker needs. Ray would start a process for each CPU of a node in advance."""


@contextmanager
def nodes(count: int, places: int) -> Iterator[None]:
    """``count`` nodes, each with room for ``places`` workers; this process is connected."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster()
    try:
        for _ in range(count):
            cluster.add_node(num_cpus=1, resources={"place": places}, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()
