"""Arms as settings of the command line: what ``swarm-ui train`` and ``swarm-ui eval`` do.

``set`` has the fields of a settings file, such as ``{"env.name": "phone", "team.agents": 4}``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cell import Cell
from benchmarks.support.origin import origin_here
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import Run, evaluate, load, train
from swarm_ui.stats import Outcome

Set = Mapping[str, Any]
_QUICK = {
    "train.iterations": 1, "train.shared_iterations": 1, "train.episodes": 2,
    "train.update.steps": 2,
}  # fmt: skip
_CONCURRENCY = 16


@dataclass(frozen=True, kw_only=True)
class Test:
    """Test episodes of one environment."""

    env: str
    splits: Mapping[str, str]
    """What tables call a split, and what the environment does."""
    episodes: int
    seeds: Sequence[int] = (11,)
    """They choose the episodes."""


@dataclass(frozen=True, kw_only=True)
class Configured:
    """A model as it is, after a training of stage 2, or after commands of stage 1."""

    tests: Sequence[Test]
    set: Set
    """Fields of the tested team and its model."""
    training: Set | None = None
    """Fields of a training of stage 2, beside those of ``set``; ``None``: there is none."""
    commands: Callable[[Path, int], Sequence[Sequence[str]]] | None = None
    """Words of ``swarm-ui`` commands that write an adapter into ``FOLDER/stage1/final``, by folder
    and seed."""

    @property
    def seeded(self) -> bool:
        """Whether the study trains it."""
        return self.training is not None or self.commands is not None

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        given, work = dict(self.set), dict[str, float]()
        if self.commands is not None:
            for words in self.commands(folder, seed or 0):
                short = ["finetune.max_steps=2"] if quick and words[0] == "finetune" else []
                _command([*words, *short])
            given["model.adapters"] = str(folder / "stage1" / "final")
        if self.training is not None:
            run = _run(folder / "training", {
                **given, "env.name": "phone", "train.seed": seed, "train.concurrency": _CONCURRENCY,
                **self.training, **(_QUICK if quick else {}),
            })  # fmt: skip
            history = train(run)
            work = {"steps": sum(at["steps"] for at in history),
                    "cpu_s": round(sum(at["cpu_seconds"] for at in history), 1)}  # fmt: skip
            given["model.adapters"] = str(run.adapters)
        played = self.tests[:1] if quick else self.tests
        for number in played[0].seeds[: 1 if quick else None]:
            tests = [test for test in played if number in test.seeds]
            yield self._tested(name, seed, number, tests, given, work, folder, quick=quick)

    def _tested(
        self, name: str, seed: int | None, number: int, tests: Sequence[Test], given: Set,
        work: Mapping[str, float], folder: Path, *, quick: bool,
    ) -> Cell:  # fmt: skip
        found, costs = {}, dict[str, Mapping[str, float]]()
        for test in tests:
            settings = {**given, "env.name": test.env, "place.concurrency": _CONCURRENCY}
            run = _run(folder / f"test-{test.env}-{number}", settings)
            count = 2 if quick else test.episodes
            results = evaluate(run, split=list(test.splits.values()), seed=number, episodes=count)
            titles = {split: title for title, split in test.splits.items()}
            for arm in results.arms:
                pairs = zip(arm.jobs, arm.outcomes, strict=True)
                found[titles[arm.split]] = [Outcome(*job, v, seed or 0) for job, v in pairs]
                costs[titles[arm.split]] = {"calls": arm.work.calls}
        if work:
            costs["training"] = work
        return Cell(
            arm=name, seed=seed, settings={"evaluation seed": number}, outcomes=found, work=costs,
            origin=origin_here(),
        )  # fmt: skip


def _run(path: Path, given: Set) -> Run:
    """The run in a folder; it is begun if it is not there."""
    if (path / "config.json").exists():
        return Run.open(path)
    overrides = [f"{name}={json.dumps(value)}" for name, value in given.items()]
    return Run.create(path, load(overrides=overrides))


def _command(words: Sequence[str]) -> None:
    """Run a command of this package; each continues what it began."""
    done = subprocess.run([sys.executable, "-m", "swarm_ui", *words, "--quiet"], check=False)
    if done.returncode:
        raise ConfigError(f"'swarm-ui {' '.join(words)}' ended with {done.returncode}; see above")
