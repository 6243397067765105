"""Training whose episodes are played by workers of a Ray cluster equals training in one process."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from local_ray import killing, local_ray
from sent_rollouts import figures

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.splits import draw_jobs, tasks
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import LocalModel, PublishedModel, hold_model
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import Job, RemoteWorker, Rollouts, ray_rollouts

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1800)]

AGENTS = ("agent_0", "agent_1")


def worker_of(rollouts: Rollouts) -> int:
    """The process of a running worker; 0: there is none."""
    pids = [w.pid for w in rollouts.workers if isinstance(w, RemoteWorker)]
    return next((pid for pid in pids if pid), 0)


CONFIG = TeamConfig(
    iterations=2, shared_iterations=1, episodes=4, edges="learned", graphs=2, concurrency=4,
    rank=4, update=UpdateConfig(method="dpo", steps=2, batch_size=4), seed=3,
)  # fmt: skip


def sample_jobs(count: int, /, *, seed: int) -> list[Job]:
    return draw_jobs(tasks("train"), count, random.Random(seed).getrandbits(31))


class Trained(NamedTuple):
    """What a run leaves on disk, without times."""

    metrics: list[dict[str, Any]]
    adapters: dict[str, bytes]
    edges: list[float]
    versions: list[str | None]
    """Versions of the first agent's adapter that played, in the order of the iterations."""


def train(
    folder: Path,
    *,
    workers: int = 0,
    strike: bool = False,
    held: bool = False,
) -> Trained:
    """Train in this process, or with ``workers``, which have models of their own, or ask one that
    is ``held``. ``strike``: a worker, or the held
    model, is killed in the second iteration."""
    learner = LocalModel.load()
    versions: list[str | None] = []

    def note(iteration: int, episodes: Any) -> None:
        calls = [c for e in episodes for s in e.steps for c in s.trace.calls]
        versions.extend(sorted({c.adapter for c in calls if c.node == "agent_0"}))

    async def run() -> Any:
        if not workers:
            return await trainer(learner, PhoneEnvironment).run()
        elsewhere: Any = await hold_model(LocalModel.load, cpus=0.1) if held else LocalModel.load
        model = PublishedModel(learner, elsewhere)
        pid = await elsewhere._actors[0].ready.remote() if held else 0
        async with ray_rollouts(PhoneEnvironment, workers=workers, slots=2) as rollouts:
            after = (folder / "metrics.jsonl").exists
            with killing(lambda: pid or worker_of(rollouts), lambda: strike and after()) as killed:
                result = await trainer(model, rollouts).run()
            assert bool(killed) == strike
            assert held or bool(rollouts.losses) == strike
        if held:
            await elsewhere.close()
        return result

    def trainer(model: Any, places: Any) -> TeamTrainer:
        team = CollabGraph.collaborative(
            2, 2, model=model, adapters=AGENTS, temperature=0.8, views="shuffle"
        )
        made = TeamTrainer(
            team, places, sample_jobs, config=CONFIG, folder=folder,
            critic=ScriptedCritic(PhoneEnvironment), adversary=ScriptedAdversary(),
        )  # fmt: skip
        made.on_episodes = note
        return made

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


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(tmp_path_factory.mktemp("here"))


def test_training_on_workers_is_equal_bit_by_bit(here: Trained, tmp_path: Path) -> None:
    there = train(tmp_path / "there", workers=2)
    assert here.versions == ["agent_0@0", "agent_0@1"]
    assert there == here
    assert there.metrics[0]["pairs"]


def test_a_held_model_that_is_lost_reads_its_versions_again(here: Trained, tmp_path: Path) -> None:
    assert train(tmp_path, workers=2, held=True, strike=True) == here


def test_a_killed_worker_changes_nothing(here: Trained, tmp_path: Path) -> None:
    assert train(tmp_path, workers=2, strike=True) == here
