"""Episodes: policies act in environments, one at a time or many at once."""

from __future__ import annotations

from swarm_ui.rollout.episodes import (
    LocalRollout,
    rollout,
    rollout_many,
    rollout_stream,
)
from swarm_ui.rollout.intervention import Intervene, Intervention, KeepsNotes
from swarm_ui.rollout.per_process import PerProcess
from swarm_ui.rollout.pool import Job, MakeEnvironment
from swarm_ui.rollout.rollouts import PerWorker, Rollouts, play_jobs

__all__ = [
    "Intervene",
    "Intervention",
    "Job",
    "KeepsNotes",
    "LocalRollout",
    "MakeEnvironment",
    "PerProcess",
    "PerWorker",
    "Rollouts",
    "play_jobs",
    "rollout",
    "rollout_many",
    "rollout_stream",
]
