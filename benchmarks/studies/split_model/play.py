"""Plays the arms of the study, with a record on disk after every few episodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.studies.split.arms import Templates
from benchmarks.studies.split.report import Study as ScriptedStudy
from benchmarks.studies.split_model.controls import SwappedValues
from benchmarks.studies.split_model.facts import Arm, Facts, facts_of
from benchmarks.studies.split_model.plan import TRAINING, Sizes
from benchmarks.studies.struct_files import read_struct
from benchmarks.support.records import read_record
from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.split_facts import Edges, SplitTeams
from swarm_ui.files import write_atomic
from swarm_ui.model import ChatModel
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.trace.jsonl import read_jsonl, write_jsonl

TEMPLATES: tuple[Templates, ...] = ("train", "new_templates")
SWAPPED = "needed edges, values swapped"
ARMS = ("no talk", "needed edges", "learned edges", "broadcast", SWAPPED)
LEARNED_RUN = 0
"""The run of the scripted study whose learned edges are used."""
_ADAPTER = "split"


def arm_jobs(sizes: Sizes, templates: Templates) -> list[Job]:
    """The test episodes: all templates in turn, with test parameters."""
    count = sizes.known if templates == "train" else sizes.new
    return draw_jobs(split_tasks(templates), count, 1, seeds=TEST_SEEDS)


def learned_edges(phone: SplitPhone) -> Edges:
    """The graphs that scripted agents learned, one for each acting app."""
    study = read_record("split", ScriptedStudy)
    (run,) = [one for one in study.learned if one.seed == LEARNED_RUN]
    return lambda task, seed: run.edges[phone.spec(task).acting]


def open_model(sizes: Sizes, out: Path) -> ChatModel:
    """The model with the adapter that was trained.

    Raises:
        ConfigError: the training was restored from a record, which holds no weights.
    """
    adapter = out / TRAINING / "final"
    if not adapter.exists():
        raise ConfigError(
            f"there is no trained adapter in '{adapter}', because a record holds no weights: "
            f"delete '{out / 'records'}', and the same command makes corpus and adapter again"
        )
    from swarm_ui.nodes import CausalModel

    silence_transformers()
    model = CausalModel.named(sizes.model)
    model.load_adapter(adapter, _ADAPTER)
    return model


class Player:
    """Plays arms and keeps their episodes in files."""

    def __init__(self, sizes: Sizes, out: Path, model: ChatModel | None) -> None:
        """``model``: ``None`` only reads what was played."""
        self.sizes, self._out, self._model = sizes, out, model

    def arm(self, arm: str, templates: Templates) -> Arm:
        """The episodes that were played, those of a record first, and their CPU time."""
        folder, path = self._folder(arm, templates), self.facts_path(arm, templates)
        kept = Arm(cpu_s=0.0, episodes=[])
        if path.exists():
            kept = read_struct(path, Arm)
        seconds = [float(part.read_text(encoding="utf-8")) for part in folder.glob("*.cpu")]
        played = [facts_of(e, self.sizes.apps) for part in sorted(folder.glob("*.jsonl"))
                  for e in read_jsonl(part)]  # fmt: skip
        return Arm(cpu_s=kept.cpu_s + sum(seconds), episodes=[*kept.episodes, *played])

    def facts(self, arm: str, templates: Templates) -> list[Facts]:
        """The episodes that were played."""
        return self.arm(arm, templates).episodes

    def facts_path(self, arm: str, templates: Templates) -> Path:
        """The file with the episodes of a record."""
        return self._folder(arm, templates) / "facts.json"

    def left(self, arm: str, templates: Templates) -> list[Job]:
        """The test episodes that were not played yet."""
        done = {(e.task, e.seed) for e in self.facts(arm, templates)}
        return [job for job in arm_jobs(self.sizes, templates) if job not in done]

    def play(self, arm: str, templates: Templates) -> None:
        """Play what is left of an arm; each part is on disk when it ends."""
        assert self._model is not None, "this player only reads"
        jobs, size = self.left(arm, templates), self.sizes.concurrency
        for first in range(0, len(jobs), size):
            self._part(arm, templates, jobs[first : first + size])

    def _part(self, arm: str, templates: Templates, jobs: Sequence[Job]) -> None:
        make = partial(SplitPhone, agents=self.sizes.apps)
        teams = self._teams(arm)
        edges: dict[str, Edges] = {
            "no talk": teams.silent,
            "broadcast": teams.broadcast,
            "learned edges": learned_edges(teams.phone),
        }
        policy = teams.policy(arm, edges.get(arm, teams.oracle))
        began = time.process_time()
        played = asyncio.run(rollout_many(make, policy, jobs, concurrency=len(jobs)))
        folder = self._folder(arm, templates)
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.jsonl")))
        write_atomic(folder / f"{number:03}.cpu", f"{time.process_time() - began:.1f}\n")
        write_jsonl(folder / f"{number:03}.jsonl", played)

    def _teams(self, arm: str) -> SplitTeams:
        assert self._model is not None
        model = SwappedValues(self._model, self.sizes.apps) if arm == SWAPPED else self._model
        return SplitTeams(SplitPhone(agents=self.sizes.apps), model, adapter=_ADAPTER)

    def _folder(self, arm: str, templates: Templates) -> Path:
        name = "".join(c if c.isalnum() else "-" for c in f"{arm}-{templates}")
        return self._out / "episodes" / name
