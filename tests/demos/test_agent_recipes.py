"""The recipes of the included agents: what they are shown, and that they train and save."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")


from demos.base_agent import recipes
from demos.base_agent.environment import InventedScreens
from demos.base_agent.recipes import (
    DEVICES,
    FIRST_DEVICE,
    GENERAL,
    general_demonstrations,
    make_agent,
)
from demos.base_agent.stream import Mix
from swarm_ui.environments.phone.invented import UNSEEN
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, synthesize
from swarm_ui.rollout import Job

SMALL = {"devices": 4, "on_devices": 12, "on_phone": 38}


def test_it_is_shown_the_devices_and_all_training_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Job] = []
    solve = recipes.solver_steps

    async def watched(environment, jobs, rng):  # type: ignore[no-untyped-def]
        shown.extend(jobs)
        return await solve(environment, jobs, rng)

    monkeypatch.setattr(recipes, "solver_steps", watched)
    steps = asyncio.run(general_demonstrations(7, **SMALL))
    devices = [task for task, _ in shown if task.startswith("invented-")]
    assert len(shown) == 50 and len(devices) == 12 and len(steps) > 100
    assert {int(task.split("-")[1]) for task in devices} <= set(range(5_000, 5_004))
    assert len({task for task, _ in shown} - set(devices)) == 38


def test_its_devices_are_in_no_test_and_in_no_study() -> None:
    assert 64 < FIRST_DEVICE < FIRST_DEVICE + DEVICES <= 10_000 < UNSEEN


def differs(one: LocalModel, other: LocalModel) -> bool:
    pairs = zip(one.base_weights().values(), other.base_weights().values(), strict=True)
    return any(not bool((a == b).all()) for a, b in pairs)


def test_the_general_agent_continues_another(tmp_path: Path) -> None:
    shown = asyncio.run(general_demonstrations(7, **SMALL))
    done = make_agent(tmp_path, replace(GENERAL, steps=3), start=BASE_AGENT,
                      mix=Mix(), shown=shown)  # fmt: skip
    assert done.steps == 3
    assert differs(LocalModel.load(tmp_path), LocalModel.load())


async def test_a_corpus_of_invented_screens(tmp_path: Path) -> None:
    config = CorpusConfig(prompt_format="compact", reasons=False, screens=1)
    jobs = [(task, seed) for task in InventedScreens.tasks for seed in range(8)]
    done = await synthesize(
        InventedScreens, Models.scripted(), jobs, tmp_path / "c", held_out=HeldOut(), config=config
    )
    assert done.successes == 16 and done.samples["level 3"] > 8


@pytest.mark.slow
def test_the_recipe_by_command(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    two = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    for agent, how in (("base", two), ("general", [])):
        line = [sys.executable, "-m", *how, "demos.base_agent", agent, "--steps", "2"]
        subprocess.run([*line, "--out", str(tmp_path / agent)], cwd=root, check=True)
        assert LocalModel.load(tmp_path / agent)
