"""Episodes: policies act in environments, one at a time or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_ui.deprecation import renamed_names
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

if not TYPE_CHECKING:  # type checkers know only the present names
    __getattr__ = renamed_names(__name__)
