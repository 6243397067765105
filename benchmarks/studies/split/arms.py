"""Plays the arms of the study on equal test episodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from functools import partial
from statistics import fmean
from typing import Literal

import msgspec

from benchmarks.studies.split.learning import AGENTS, Learned
from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import Edges, SplitTeams, tokens
from swarm_ui.graph.topology import Edge
from swarm_ui.node import derive
from swarm_ui.rollout import GraphPolicy, Policy, rollout_many
from swarm_ui.stats import Outcome, clustered_mean, outcomes, paired_difference

Templates = Literal["train", "new_templates"]
SIZES = (4, 6, 8, 10)
SENDERS = 3
"""Of the control with a few random senders."""
CONCURRENCY = 64
CONTRASTS = (
    ("broadcast", "no talk"),
    ("learned edges", "broadcast"),
    ("learned edges", "3 random senders"),
)
"""The differences that were named before the study was run."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One arm on one set of templates."""

    name: str
    templates: Templates
    """All with test parameters; ``train``: the templates on which edges are learned."""
    agents: int
    success: float
    low: float
    high: float
    """95 % interval, clustered by template and, for learned edges, by run."""
    seeds: int
    """Runs of edge learning; 0 where nothing is learned."""
    episodes: int
    tokens: float
    """Mean of an episode: words of all prompts and replies."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A contrast on the same episodes."""

    name: str
    templates: Templates
    difference: float
    low: float
    high: float
    tokens: float
    """Tokens of the first arm for each token of the second."""


class Played(msgspec.Struct, kw_only=True):
    """An arm's outcomes, over all of its runs."""

    outcomes: list[Outcome]
    tokens: list[int]
    runs: int


class Arms:
    """The arms on the test episodes of one set of templates, with one number of agents."""

    def __init__(self, templates: Templates, each: int, agents: int = AGENTS) -> None:
        """``each``: episodes of each template."""
        names = split_tasks(templates)
        self.templates, self.agents = templates, agents
        self._jobs = draw_jobs(names, each * len(names), 1, seeds=TEST_SEEDS)
        self._teams = SplitTeams(SplitPhone(agents=agents))
        self.played: dict[str, Played] = {}

    def play_fixed(self, names: Iterable[str] | None = None) -> None:
        """All arms in which nothing is learned, or the named ones."""
        teams = self._teams
        arms = {
            "no talk": teams.policy("no talk", teams.silent),
            "broadcast": teams.policy("broadcast", teams.broadcast),
            "all to the acting agent": teams.policy("star", teams.star),
            "random DAG": teams.policy("random", teams.random),
            f"{SENDERS} random senders": teams.policy("few", self._few),
            "oracle router": teams.policy("oracle", teams.oracle),
            "one agent, all screens": GraphPolicy(teams.one),
            "one agent, switches apps": GraphPolicy(teams.one),
        }
        for name in names or arms:
            self._play(name, arms[name], whole="switches" in name)

    def play_learned(self, learned: Sequence[Learned]) -> None:
        """The arm with learned edges, over all runs of learning."""
        for one in learned:
            policy = self._teams.policy("learned", self._learned(one))
            self._play("learned edges", policy, run=one.seed)

    def row(self, name: str) -> Row:
        played = self.played[name]
        rate = clustered_mean(played.outcomes)
        assert rate is not None, f"{name}: every episode has a fault"
        return Row(
            name=name, templates=self.templates, agents=self.agents,
            success=round(rate.mean, 4), low=round(rate.low, 4), high=round(rate.high, 4),
            seeds=played.runs, episodes=len(self._jobs), tokens=round(fmean(played.tokens), 1),
        )  # fmt: skip

    def difference(self, ours: str, theirs: str) -> Difference:
        one, other = self.played[ours], self.played[theirs]
        runs = sorted({o.run for o in one.outcomes})
        repeated = [msgspec.structs.replace(o, run=r) for r in runs for o in other.outcomes]
        gap = paired_difference(one.outcomes, repeated)
        assert gap is not None, f"{ours} - {theirs}: every episode has a fault"
        return Difference(
            name=f"{ours} - {theirs}", templates=self.templates, difference=round(gap.mean, 4),
            low=round(gap.low, 4), high=round(gap.high, 4),
            tokens=round(fmean(one.tokens) / fmean(other.tokens), 4),
        )  # fmt: skip

    def _learned(self, one: Learned) -> Edges:
        """The learned graph of the acting app."""
        return lambda task, seed: one.edges[self._teams.phone.spec(task).acting]

    def _few(self, task: str, seed: int) -> Sequence[Edge]:
        """A few random senders to the acting agent."""
        acting = self._teams.phone.spec(task).acting
        others = [app for app in SPLIT_APPS if app != acting]
        chosen = random.Random(derive(seed, "few", task)).sample(others, SENDERS)
        return [(app, acting) for app in chosen]

    def _play(self, name: str, policy: Policy, *, run: int = -1, whole: bool = False) -> None:
        make = partial(SplitPhone, agents=self.agents, whole=whole)
        episodes = asyncio.run(rollout_many(make, policy, self._jobs, concurrency=CONCURRENCY))
        played = self.played.setdefault(name, Played(outcomes=[], tokens=[], runs=0))
        played.outcomes += outcomes(episodes, max(run, 0))
        played.tokens += [tokens(episode) for episode in episodes]
        played.runs += run >= 0
