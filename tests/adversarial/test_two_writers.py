"""Two processes that resume one run at once: one goes on, the other is told so; nothing doubles."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from graph_fakes import FixedModel
from interrupts import held
from learning_fakes import TinyModel
from learning_run import run as train

from swarm_ui import CollabGraph, ConfigError, GraphPolicy, read_jsonl
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment import playing
from swarm_ui.experiment.playing import Trial
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.files import only_writer
from swarm_ui.report.results import Results
from swarm_ui.rollout import LocalWorker, Rollouts
from swarm_ui.storage.run_directory import RunDirectory

JOBS = tuple(("contacts-add", seed) for seed in range(12))


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"
    }


async def play(run: RunDirectory) -> None:
    policy = GraphPolicy(CollabGraph.solo(FixedModel({None: '{"action_type":"wait"}'})))
    trial, results = Trial("test", JOBS, "episodes"), Results(labels=("phone",))
    async with Rollouts([LocalWorker(PhoneEnvironment, slots=2)]) as rollouts:
        await playing.play(run, results, trial, policy, rollouts, ProgressDisplay(), max_steps=2)


def test_a_run_that_another_process_writes_is_refused_and_left_alone(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={})
    before = files(run.path)
    with held(run.path, "episodes") as other:
        with pytest.raises(ConfigError, match=r"is open in another process \(episodes\)"):
            asyncio.run(play(run))
        assert files(run.path) == before
        other.kill()  # as by kill -9: the lock goes with the process
        other.wait()
        asyncio.run(play(run))
    assert sorted(e.seed for e in read_jsonl(run.traces / "episodes.jsonl")) == [*range(12)]


def test_two_in_one_process_double_no_episode(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={})

    async def both() -> list[BaseException | None]:
        return await asyncio.gather(play(run), play(run), return_exceptions=True)

    first, second = asyncio.run(both())
    assert first is None and isinstance(second, ConfigError)
    assert sorted(e.seed for e in read_jsonl(run.traces / "episodes.jsonl")) == [*range(12)]


def test_training_is_refused_too(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with held(folder, "training"):
        with pytest.raises(ConfigError, match=r"is open in another process \(training\)"):
            train(TinyModel(), folder, resume=True)
        assert files(folder) == {}
    history = train(TinyModel(), folder, resume=True).history
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    assert len(lines) == len(history) == 3


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), only_writer(tmp_path, "episodes"):
            raise KeyError
