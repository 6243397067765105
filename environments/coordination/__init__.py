"""Coordination on networks, after AgentsNet (arXiv 2507.08616): one agent for each name, messages
only between neighbours, and a problem that no agent can solve alone.

See :class:`CoordinationEnvironment` for the tasks and the reward, and :class:`CoordinationPolicy`
for the team.
"""

from __future__ import annotations

from swarm_ui.environments.base import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.coordination.environment import (
    CoordinationEnvironment,
    read,
    score,
    written,
)
from swarm_ui.environments.coordination.policy import CoordinationPolicy, GatherAnswers
from swarm_ui.environments.coordination.problem import (
    FAMILIES,
    KINDS,
    LARGE,
    SMALL,
    Family,
    Kind,
    Problem,
    draw_problem,
    names_of,
    task_names,
)

__all__ = [
    "FAMILIES", "KINDS", "LARGE", "SMALL", "TEST_SEEDS", "TRAIN_SEEDS", "VALIDATION_SEEDS",
    "CoordinationEnvironment", "CoordinationPolicy", "Family",
    "GatherAnswers", "Kind", "Problem", "draw_problem", "names_of", "read", "score",
    "task_names", "written",
]  # fmt: skip
