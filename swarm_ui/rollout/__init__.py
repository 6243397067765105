"""Episodes: policies act in environments, one at a time or many at once."""

from swarm_ui.rollout.episode import (
    WAIT,
    Decide,
    Draw,
    GraphPolicy,
    Intervene,
    Intervention,
    Job,
    MakeEnvironment,
    Policy,
    as_policy,
    rollout,
    solver_grades,
    spread_jobs,
)
from swarm_ui.rollout.ray import RayWorker, ray_cluster, ray_rollouts
from swarm_ui.rollout.rollouts import (
    Acting,
    Attempt,
    LocalWorker,
    OpenEnvironments,
    Rollouts,
    Worker,
    WorkerLost,
    rollout_many,
)

__all__ = [
    "WAIT", "Acting", "Attempt", "Decide", "Draw", "GraphPolicy", "Intervene", "Intervention",
    "Job", "LocalWorker", "MakeEnvironment", "OpenEnvironments",
    "Policy", "RayWorker", "Rollouts", "Worker", "WorkerLost",
    "as_policy", "ray_cluster", "ray_rollouts", "rollout",
    "rollout_many", "solver_grades", "spread_jobs",
]  # fmt: skip
