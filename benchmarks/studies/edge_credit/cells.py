"""Cells of the study: the choice of an arm's setting, and one run of learning with its tests."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Literal

import msgspec

from benchmarks.studies.edge_credit.plan import (
    CANDIDATES,
    CRITIC,
    ERRORS,
    HELD,
    NEAR,
    Budget,
    Setting,
)
from benchmarks.studies.edge_credit.sources import source
from benchmarks.studies.split.learning import AGENTS, Graphs, Learned, learn
from benchmarks.studies.struct_files import read_struct
from benchmarks.support.origin import commit
from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import SplitTeams, tokens
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.stats import Outcome, outcomes

Templates = Literal["train", "new_templates"]
TEMPLATES: tuple[Templates, ...] = ("train", "new_templates")
CONCURRENCY = 64
_CURVE_DRAW, _TEST_DRAW = 2, 1


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of an arm, chosen on training templates with validation parameters."""

    arm: str
    commit: str
    setting: Setting
    tried: list[tuple[Setting, float, float]]
    """Each setting, with mean success and tokens of the most probable graphs over all steps."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """Test episodes of the most probable graphs."""

    outcomes: list[Outcome]
    tokens: float
    """Mean of an episode."""

    @property
    def success(self) -> float:
        return fmean(o.value for o in self.outcomes if o.value is not None)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One run of learning."""

    arm: str
    seed: int
    commit: str
    setting: Setting
    learned: Learned
    credit_calls: int
    """Calls of agents that the credit cost, besides those of the episodes."""
    curve: dict[str, list[tuple[float, float]]]
    """By templates: success and tokens after each step, with one test episode of each template."""
    tests: dict[str, dict[str, Played]]
    """By point of measurement and templates."""

    def reached(self, most: float = math.inf) -> int | None:
        """The step from which known templates are near the oracle, which solves all of them, for
        :data:`HELD` steps, with at most this number of tokens; ``None``: there is none."""
        near = [success >= NEAR and spent <= most for success, spent in self.curve["train"]]
        starts = range(len(near) - HELD + 1)
        return next((k + 1 for k in starts if all(near[k : k + HELD])), None)


class Player:
    """Plays episodes on learned graphs. Equal episodes on equal graphs are played once."""

    def __init__(self) -> None:
        self._teams = SplitTeams(SplitPhone(agents=AGENTS))
        self._known: dict[tuple[Job, frozenset[Edge]], tuple[float | None, int]] = {}

    def play(self, jobs: Sequence[Job], graphs: Graphs) -> list[tuple[float | None, int]]:
        """Success and tokens of each episode."""
        keys = [(job, frozenset(graphs[self._acting(job)])) for job in jobs]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        policy = self._teams.policy(
            "learned", lambda task, seed: graphs[self._teams.phone.spec(task).acting]
        )
        played = asyncio.run(
            rollout_many(
                partial(SplitPhone, agents=AGENTS), policy, [job for job, _ in new],
                concurrency=CONCURRENCY,
            )
        )  # fmt: skip
        results = zip((o.value for o in outcomes(played)), map(tokens, played), strict=True)
        self._known |= zip(new, results, strict=True)
        return [self._known[key] for key in keys]

    def _acting(self, job: Job) -> str:
        return self._teams.phone.spec(job[0]).acting


class Cells:
    """The cells in one folder. A finished one is not repeated."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget
        self._player = Player()

    def path(self, arm: str, seed: int) -> Path:
        return self.folder / "cells" / f"{arm.replace(' ', '_').replace(',', '')}-{seed}.json"

    def choice_path(self, arm: str) -> Path:
        return self.folder / "choices" / f"{arm.replace(' ', '_')}.json"

    def choose(self, arm: str) -> Choice:
        """Try the settings of an arm. The one with the highest mean success over all steps and
        seeds is chosen; a tie goes to fewer tokens."""
        tried = [
            (setting, *self._tried(arm, setting))
            for setting in CANDIDATES[arm][: self.budget.candidates]
        ]
        best = max(tried, key=lambda one: (one[1], -one[2]))
        return Choice(arm=arm, commit=commit(), setting=best[0], tried=tried)

    def run(self, arm: str, seed: int) -> Cell:
        """Learn once, and test after each step."""
        choice = self.choice_path(CRITIC if arm == ERRORS else arm)
        setting = read_struct(choice, Choice).setting
        credit = source(arm, setting.discount, seed)
        points = {step: name for name, step in self.budget.points().items()}
        curve: dict[str, list[tuple[float, float]]] = {templates: [] for templates in TEMPLATES}
        tests: dict[str, dict[str, Played]] = {}

        def after(step: int, graphs: Graphs) -> None:
            for templates in TEMPLATES:
                one = self._tested(templates, 1, _CURVE_DRAW, seed, graphs)
                curve[templates].append((round(one.success, 4), round(one.tokens, 1)))
            if step in points:
                tests[points[step]] = {
                    templates: self._tested(templates, self.budget.each, _TEST_DRAW, seed, graphs)
                    for templates in TEMPLATES
                }

        learned = learn(self.budget.plan(setting), seed, credit=credit, after=after)
        return Cell(
            arm=arm, seed=seed, commit=commit(), setting=setting, learned=learned,
            credit_calls=0 if credit is None else credit.calls, curve=curve, tests=tests,
        )  # fmt: skip

    def oracle(self) -> dict[str, Played]:
        """The needed senders only, on the test episodes."""
        teams = SplitTeams(SplitPhone(agents=AGENTS))
        found: dict[str, Played] = {}
        for templates in TEMPLATES:
            jobs = _jobs(templates, self.budget.each, _TEST_DRAW, TEST_SEEDS)
            played = asyncio.run(
                rollout_many(
                    partial(SplitPhone, agents=AGENTS), teams.policy("oracle", teams.oracle), jobs,
                    concurrency=CONCURRENCY,
                )
            )  # fmt: skip
            results = list(
                zip((o.value for o in outcomes(played)), map(tokens, played), strict=True)
            )
            found[templates] = _of(jobs, results, 0)
        return found

    def _tried(self, arm: str, setting: Setting) -> tuple[float, float]:
        """Mean success and tokens over steps and seeds, on validation parameters."""
        jobs = _jobs("train", 1, _CURVE_DRAW, VALIDATION_SEEDS)
        found: list[Played] = []
        for seed in self.budget.tuning_seeds:

            def after(step: int, graphs: Graphs, seed: int = seed) -> None:
                found.append(_of(jobs, self._player.play(jobs, graphs), seed))

            plan = self.budget.plan(setting, self.budget.tuning_steps)
            learn(plan, seed, credit=source(arm, setting.discount, seed), after=after)
        means = fmean(one.success for one in found), fmean(one.tokens for one in found)
        return round(means[0], 4), round(means[1], 1)

    def _tested(
        self, templates: Templates, each: int, draw: int, seed: int, graphs: Graphs
    ) -> Played:
        jobs = _jobs(templates, each, draw, TEST_SEEDS)
        return _of(jobs, self._player.play(jobs, graphs), seed)


def _jobs(templates: Templates, each: int, draw: int, seeds: range) -> list[Job]:
    names = split_tasks(templates)
    return draw_jobs(names, each * len(names), draw, seeds=seeds)


def _of(jobs: Sequence[Job], played: Sequence[tuple[float | None, int]], run: int) -> Played:
    outcomes = [
        Outcome(task, seed, success, run)
        for (task, seed), (success, _) in zip(jobs, played, strict=True)
    ]
    return Played(outcomes=outcomes, tokens=fmean(spent for _, spent in played))
