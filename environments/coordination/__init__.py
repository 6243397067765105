"""Coordination on networks, after AgentsNet (arXiv 2507.08616): one agent for each name, messages
only between neighbours, and a problem that no agent can solve alone.

See :class:`CoordinationEnvironment` for the tasks and the reward, :class:`CoordinationPolicy` for
the team, and :mod:`swarm_ui.environments.coordination.scripted` for lower and upper bounds.
"""

from __future__ import annotations

from swarm_ui.environments.coordination.environment import CoordinationEnvironment
from swarm_ui.environments.coordination.message_passing import (
    CoordinationPolicy,
    GatherAnswers,
    message_graph,
)
from swarm_ui.environments.coordination.problem import Problem, draw_problem
from swarm_ui.environments.coordination.scores import Score, score
from swarm_ui.environments.coordination.scripted import (
    ScriptedAgents,
    distributed,
    guessing,
    silent,
)
from swarm_ui.environments.coordination.splits import (
    LARGE,
    SMALL,
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    draw_jobs,
    task_names,
)

__all__ = [
    "LARGE",
    "SMALL",
    "TEST_SEEDS",
    "TRAIN_SEEDS",
    "VALIDATION_SEEDS",
    "CoordinationEnvironment",
    "CoordinationPolicy",
    "GatherAnswers",
    "Problem",
    "Score",
    "ScriptedAgents",
    "distributed",
    "draw_jobs",
    "draw_problem",
    "guessing",
    "message_graph",
    "score",
    "silent",
    "task_names",
]
