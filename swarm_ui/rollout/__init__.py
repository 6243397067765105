"""Episodes: policies act in environments, one at a time or many at once."""

from swarm_ui.rollout.episodes import (
    Intervene,
    Intervention,
    rollout,
    rollout_many,
    rollout_stream,
)
from swarm_ui.rollout.pool import Job, MakeEnvironment

__all__ = [
    "Intervene",
    "Intervention",
    "Job",
    "MakeEnvironment",
    "rollout",
    "rollout_many",
    "rollout_stream",
]
