"""Episodes: policies act in environments, one at a time or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_ui.deprecation import renamed_names
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

if not TYPE_CHECKING:  # type checkers know only the present names
    __getattr__ = renamed_names(__name__)
