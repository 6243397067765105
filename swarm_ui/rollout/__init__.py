"""Episodes: policies act in environments, one at a time or many at once."""

from swarm_ui.rollout.cluster import ray_cluster
from swarm_ui.rollout.episode import (
    WAIT,
    Intervene,
    Intervention,
    Job,
    MakeEnvironment,
    rollout,
    solver_grades,
    spread_jobs,
)
from swarm_ui.rollout.policy import Decide, Draw, GraphPolicy, Policy, as_policy
from swarm_ui.rollout.ray import RayWorker, ray_rollouts
from swarm_ui.rollout.rollouts import OnEpisode, Rollouts, rollout_many
from swarm_ui.rollout.worker import (
    Acting,
    Attempt,
    LocalWorker,
    PerWorker,
    Work,
    Worker,
    WorkerLost,
)

__all__ = [
    "WAIT", "Acting", "Attempt", "Decide", "Draw", "GraphPolicy", "Intervene", "Intervention",
    "Job", "LocalWorker", "MakeEnvironment", "OnEpisode", "PerWorker",
    "Policy", "RayWorker", "Rollouts", "Work", "Worker", "WorkerLost",
    "as_policy", "ray_cluster", "ray_rollouts", "rollout",
    "rollout_many", "solver_grades", "spread_jobs",
]  # fmt: skip
