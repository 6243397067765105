"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

from swarm_ui.rollout.distributed.cluster import RayCluster, ray_cluster
from swarm_ui.rollout.distributed.ray_rollout import LOSSES, RayRollout
from swarm_ui.rollout.distributed.resources import WorkerResources
from swarm_ui.trace.worker_events import OnWorkerEvent, WorkerEvent

__all__ = [
    "LOSSES",
    "OnWorkerEvent",
    "RayCluster",
    "RayRollout",
    "WorkerEvent",
    "WorkerResources",
    "ray_cluster",
]
