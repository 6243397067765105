"""Training whose episodes are played by workers of a Ray cluster equals training in one process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from local_ray import local_ray
from sent_rollouts import figures

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.splits import draw_jobs, tasks
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import LocalModel, PublishedModel
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.rollout_actors import RolloutActors
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update.adapter_trainer import UpdateConfig
from swarm_ui.rollout.distributed import RayRollout, WorkerEvent
from swarm_ui.rollout.pool import Job

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1800)]

AGENTS = ("agent_0", "agent_1")


def config(staleness: int) -> TeamConfig:
    return TeamConfig(
        iterations=3 if staleness else 2, shared_iterations=1, shared_steps=2, episodes=4,
        edges="learned", graphs=2, max_steps=3, concurrency=4, staleness=staleness, rank=4, alpha=8,
        update=UpdateConfig(steps=2, batch_size=4), seed=3,
    )  # fmt: skip


def sample_jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
    return draw_jobs(tasks("train"), count, rng.getrandbits(31))


class Trained(NamedTuple):
    """What a run leaves on disk, without times."""

    metrics: list[dict[str, Any]]
    adapters: dict[str, bytes]
    edges: list[float]
    versions: list[str | None]
    """Versions of the first agent's adapter that played, in the order of the iterations."""


def train(folder: Path, staleness: int, *, workers: int = 0, on_event: Any = None) -> Trained:
    """Train in this process, or with ``workers``."""
    learner = LocalModel.load()
    versions: list[str | None] = []

    def note(iteration: int, episodes: Any) -> None:
        calls = [c for e in episodes for s in e.steps for c in s.trace.calls]
        versions.extend(sorted({c.adapter for c in calls if c.node == "agent_0"}))

    async def run() -> Any:
        if not workers:
            return await trainer(learner, PhoneEnvironment).run()
        published = PublishedModel(learner, LocalModel.load, folder / "published")
        async with RayRollout(
            PhoneEnvironment, workers=workers, concurrency_per_worker=2,
            on_event=on_event or (lambda _: None),
        ) as rollouts:  # fmt: skip
            return await trainer(published, RolloutActors(rollouts, published)).run()

    def trainer(model: Any, places: Any) -> TeamTrainer:
        team = CollabGraph.collaborative(
            2, 2, model=model, adapters=AGENTS, temperatures=0.8, views="shuffle"
        )
        return TeamTrainer(
            learner, team, places, sample_jobs, config=config(staleness), folder=folder,
            critic=ScriptedCritic(PhoneEnvironment), adversary=ScriptedAdversary(),
            callbacks=Callbacks(on_episodes=note),
        )  # fmt: skip

    result = asyncio.run(run())
    learner.save_adapters(folder / "adapters")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return Trained(
        figures(lines),
        {name: (folder / "adapters" / name / "adapter_model.safetensors").read_bytes()
         for name in AGENTS},
        [*result.edges.logits.tolist(), *result.edges.scores.tolist()],
        versions,
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_ray(cpus=4):
        yield


def test_training_on_workers_is_equal_bit_by_bit(tmp_path: Path) -> None:
    here = train(tmp_path / "here", 0)
    there = train(tmp_path / "there", 0, workers=2)
    assert here.versions == ["agent_0@0", "agent_0@1"]
    assert there == here
    assert sum(there.metrics[0]["pairs"].values())


def test_a_killed_worker_changes_nothing_also_one_update_ahead(tmp_path: Path) -> None:
    here = train(tmp_path / "here", 1)
    killed: list[WorkerEvent] = []
    finished = 0

    def kill(event: WorkerEvent) -> None:
        """Kill a worker that has just got a job, in the second iteration."""
        nonlocal finished
        finished += event.kind == "finished"
        if event.kind == "assigned" and finished >= 5 and not killed:
            killed.append(event)
            os.kill(event.pid, signal.SIGKILL)

    lost: list[WorkerEvent] = []

    def watch(event: WorkerEvent) -> None:
        kill(event)
        lost.extend([event] if event.kind == "lost" else [])

    there = train(tmp_path / "there", 1, workers=2, on_event=watch)
    assert killed and lost
    assert [line["staleness"] for line in there.metrics] == [0, 1, 1]
    assert there.versions == ["agent_0@0", "agent_0@0", "agent_0@1"]
    assert there == here
