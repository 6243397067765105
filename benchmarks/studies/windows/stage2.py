"""Runs stage 2 on windows: trains the cells and plays their tests, the most important ones first.

Each result is one file in the folder of the study, so an interrupted run continues where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.studies.windows.cells import (
    Cell,
    CreditArm,
    EdgeArm,
    Plan,
    arm_name,
    train,
)
from benchmarks.studies.windows.controls import Condition, Contestant, Tested, Tests
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import check_study
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

UNTRAINED = "untrained"
ARMS: tuple[tuple[EdgeArm, CreditArm], ...] = (
    ("none", "critic"), ("learned", "critic"), ("learned", "outcome"), ("redrawn", "critic"),
    ("none", "outcome"), ("random", "critic"), ("redrawn", "outcome"), ("random", "outcome"),
)  # fmt: skip
"""All arms; those of the named contrasts first."""
FIRST: dict[str, tuple[Condition, ...]] = {
    "none-critic": ("own edges", "top ties"),
    "learned-critic": ("own edges", "shuffled", "muted"),
}
"""Conditions that are played as soon as a cell is trained; for other arms its own edges."""
LATER: dict[str, tuple[Condition, ...]] = {
    "learned-critic": ("transplanted", "scroller with notes"),
    "none-critic": ("half windows", "whole screen"),
}
"""Controls that are played after the cells of the first three arms."""
UNTRAINED_CONDITIONS: tuple[Condition, ...] = (
    "own edges", "top ties", "half windows", "scroller", "scroller with notes", "whole screen",
)  # fmt: skip
Say = Callable[[str], None]
Work = tuple[EdgeArm, CreditArm, int, tuple[Condition, ...]]


class AgentMade(msgspec.Struct, frozen=True, kw_only=True):
    """How the window agent was trained."""

    steps: int
    tokens: int
    cpu_seconds: float
    digest: str
    """Digest of its weights."""


def agent_made(folder: Path, note: Path) -> AgentMade:
    """How the window agent in a folder was trained.

    Args:
        folder: folder of the agent.
        note: what a record said of the agent of its results, restored as a file. It may be missing.
            Without it the agent must be there, and with it an agent must be the same.

    Raises:
        ConfigError: there is no agent, or another one than that of the results.
    """
    noted = read_struct(note, AgentMade) if note.exists() else None
    if not (folder / "model.safetensors").exists():
        if noted is None:
            raise ConfigError(f"there is no window agent in '{folder}': run the study first")
        return noted
    made = read_struct(folder / "made.json", dict[str, float])
    weights = (folder / "model.safetensors").read_bytes()
    found = AgentMade(
        steps=int(made["steps"]), tokens=int(made["tokens"]), cpu_seconds=made["cpu_seconds"],
        digest=hashlib.blake2b(weights, digest_size=16).hexdigest(),
    )  # fmt: skip
    if noted is not None and noted.digest != found.digest:
        raise ConfigError(
            f"the window agent in '{folder}' has other weights ({found.digest}) than that of the "
            f"restored results ({noted.digest}), so they cannot be continued with it: put that "
            "agent there, or run all again in another --out, without --restore"
        )
    return noted or found


class Stage2:
    """The folder of the study."""

    def __init__(self, folder: Path, agent: Path, plan: Plan, seeds: tuple[int, ...]) -> None:
        self._folder, self.agent, self._plan, self._seeds = folder, agent, plan, seeds

    def run(self, say: Say) -> None:
        """Run everything that is missing, in order of importance."""
        check_study(self._folder / "plan.json", self._plan)
        self.made()  # the agent is that of the results that are there
        self._untrained(("own edges", "top ties"), say)
        for work in self._cells(ARMS[:3], FIRST):
            self._work(work, say)
        for work in self._cells(ARMS[:2], LATER):
            self._work(work, say)
        self._untrained(UNTRAINED_CONDITIONS, say)
        for work in self._cells(ARMS[3:], {}):
            self._work(work, say)

    def cells(self) -> list[Cell]:
        """All trained cells."""
        found = sorted(self._folder.glob("cells/*/cell.json"))
        cells = [read_struct(path, Cell) for path in found]
        order = {arm_name(*arm): k for k, arm in enumerate(ARMS)}
        return sorted(cells, key=lambda cell: (order[cell.arm], cell.seed))

    def tests(self) -> list[Tested]:
        """All tests."""
        return [read_struct(path, Tested) for path in sorted(self._folder.glob("tests/*.json"))]

    @property
    def plan(self) -> Plan:
        """The settings of all cells."""
        return self._plan

    def made(self) -> AgentMade:
        """The window agent that the teams began with."""
        return agent_made(self.agent, self._note())

    def notes(self) -> dict[str, Any]:
        """How the agent was trained, as a file of the record, by path in the whole study."""
        return {f"{self._folder.name}/{self._note().name}": msgspec.to_builtins(self.made())}

    def _note(self) -> Path:
        return self._folder / "agent.json"

    def _cells(
        self,
        arms: tuple[tuple[EdgeArm, CreditArm], ...],
        conditions: dict[str, tuple[Condition, ...]],
    ) -> Iterator[Work]:
        """Seed by seed, so that the arms of a contrast are complete early."""
        for seed in self._seeds:
            for edges, credit in arms:
                played = conditions.get(arm_name(edges, credit), ("own edges",))
                yield edges, credit, seed, played

    def _work(self, work: Work, say: Say) -> None:
        edges, credit, seed, conditions = work
        arm = arm_name(edges, credit)
        folder = self._folder / "cells" / f"{arm}-{seed}"
        if not (folder / "cell.json").exists():
            cell, model = train(self._plan, edges, credit, seed, self.agent)
            model.save_adapters(folder / "adapters")
            write_struct(folder / "cell.json", cell)
            say(f"trained {arm} {seed}: {cell.seconds:.0f} CPU-s, rollouts {cell.rollouts}")
        left = [c for c in conditions if not self._test_path(arm, seed, c).exists()]
        if not left:
            return
        cell = read_struct(folder / "cell.json", Cell)
        if not (folder / "adapters").exists():
            raise ConfigError(
                f"{arm} {seed} has tests that are not played, and its trained team is not in "
                f"'{folder}': a record holds no weights. Delete 'cell.json' there, and the same "
                "command trains the team again"
            )
        model = LocalModel.load(self.agent)
        model.load_adapters(folder / "adapters")
        who = Contestant(
            arm=arm, seed=seed, model=model, graph=cell.graph, redrawn=edges == "redrawn"
        )
        other = [c.graph for c in self.cells() if c.arm == arm and c.seed == self._next(seed)]
        tests = Tests(who, self._plan.each, *other)
        for condition in left:
            if condition != "transplanted" or other:
                self._test(tests, arm, seed, condition, say)

    def _untrained(self, conditions: tuple[Condition, ...], say: Say) -> None:
        left = [c for c in conditions if not self._test_path(UNTRAINED, 0, c).exists()]
        if left:
            model = LocalModel.load(self.agent)
            who = Contestant(arm=UNTRAINED, seed=0, model=model, trained=False)
            tests = Tests(who, self._plan.each)
            for condition in left:
                self._test(tests, UNTRAINED, 0, condition, say)

    def _test(self, tests: Tests, arm: str, seed: int, condition: Condition, say: Say) -> None:
        tested = tests.test(condition)
        write_struct(self._test_path(arm, seed, condition), tested)
        rates = {
            name: round(sum(o.value or 0.0 for o in found) / len(found), 3)
            for name, found in tested.outcomes.items()
        }
        say(f"{arm} {seed}, {condition}: {rates}")

    def _next(self, seed: int) -> int:
        """The seed whose graph is transplanted."""
        return self._seeds[(self._seeds.index(seed) + 1) % len(self._seeds)]

    def _test_path(self, arm: str, seed: int, condition: Condition) -> Path:
        return self._folder / "tests" / f"{arm}-{seed}-{condition.replace(' ', '-')}.json"
