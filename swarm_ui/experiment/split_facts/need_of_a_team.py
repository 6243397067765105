"""A short measurement that shows where a team is needed: split facts with scripted agents."""

from __future__ import annotations

from functools import partial
from statistics import fmean

import msgspec

from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.experiment.split_facts.split_teams import SplitTeams, tokens
from swarm_ui.rollout import rollout_many
from swarm_ui.stats import Interval, clustered_mean, outcomes

APPS = 6
"""Open apps of an episode, with one agent each."""
TITLE = f"Where a team is needed: split facts, {APPS} agents with one app each"
NOTE = (
    "Every value that a task needs is in an app of another agent. The agents are scripted and the "
    "phone is simulated: the rows show what the tasks need, not what a model can do. Tokens are "
    "the words of all prompts and replies. 95 % intervals: clustered by template."
)


class NeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One set of edges on the same test episodes."""

    label: str
    success: Interval
    tokens: float
    """Mean number of tokens of an episode."""


async def need_of_a_team(each: int = 2) -> list[NeedRow]:
    """Play the arms. This takes less than a CPU-second.

    Args:
        each: test episodes of each known template, with test parameters.

    Returns:
        The rows: no talk, broadcast, and the needed edges only.
    """
    names = split_tasks("train")
    jobs = draw_jobs(names, each * len(names), 1, seeds=TEST_SEEDS)
    make = partial(SplitPhone, agents=APPS)
    teams = SplitTeams(make())
    arms = {
        "no talk": teams.silent,
        "broadcast, each to all later ones": teams.broadcast,
        "the needed edges only": teams.oracle,
    }
    rows = []
    for label, edges in arms.items():
        episodes = await rollout_many(make, teams.policy(label, edges), jobs)
        success = clustered_mean(outcomes(episodes, 0))
        assert success is not None, "an episode in this process has no fault"
        spent = fmean(map(tokens, episodes))
        rows.append(NeedRow(label=label, success=success, tokens=spent))
    return rows
