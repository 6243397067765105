"""Episodes: policies act in environments, one at a time or many at once."""

from swarm_ui.rollout.cluster import RayCluster, WorkerResources, ray_cluster
from swarm_ui.rollout.episode import (
    WAIT,
    Intervene,
    Intervention,
    Job,
    MakeEnvironment,
    rollout,
    spread_jobs,
)
from swarm_ui.rollout.policy import Decide, Draw, GraphPolicy, LoopEscapePolicy, Policy, as_policy
from swarm_ui.rollout.ray import RayWorker, ray_rollouts
from swarm_ui.rollout.rollouts import (
    Acting,
    Attempt,
    LocalWorker,
    OnEpisode,
    PerWorker,
    Rollouts,
    Work,
    Worker,
    WorkerLost,
    rollout_many,
)

__all__ = [
    "WAIT", "Acting", "Attempt", "Decide", "Draw", "GraphPolicy", "Intervene", "Intervention",
    "Job", "LocalWorker", "LoopEscapePolicy", "MakeEnvironment", "OnEpisode", "PerWorker",
    "Policy", "RayCluster", "RayWorker", "Rollouts", "Work", "Worker", "WorkerLost",
    "WorkerResources", "as_policy", "ray_cluster", "ray_rollouts", "rollout", "rollout_many",
    "spread_jobs",
]  # fmt: skip
