"""More stage 1 on invented devices: what it is shown, and that the command trains and saves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from demo_runs import DEMOS, environment
from here import run_here

from swarm_ui.environments.phone.invented import UNSEEN
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import describe_model, kind_of, load_in_process
from swarm_ui.experiment.stage1 import general_agent
from swarm_ui.experiment.stage1.general_agent import (
    FIRST_DEVICE,
    GeneralAgentConfig,
    general_demonstrations,
    shipped_training,
)
from swarm_ui.nodes import LocalModel
from swarm_ui.rollout.pool import Job

SMALL = GeneralAgentConfig(devices=4, device_episodes=12, phone_episodes=38)


def test_it_is_shown_the_devices_and_all_training_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Job] = []
    solve = general_agent.solver_steps

    async def watched(environment, jobs, rng):  # type: ignore[no-untyped-def]
        shown.extend(jobs)
        return await solve(environment, jobs, rng)

    monkeypatch.setattr(general_agent, "solver_steps", watched)
    steps = asyncio.run(general_demonstrations(SMALL))
    devices = [task for task, _ in shown if task.startswith("invented-")]
    assert len(shown) == 50 and len(devices) == 12 and len(steps) > 100
    assert {int(task.split("-")[1]) for task in devices} <= set(range(5_000, 5_004))
    assert len({task for task, _ in shown} - set(devices)) == 38


def test_equal_settings_show_equal_steps() -> None:
    first, again = (asyncio.run(general_demonstrations(SMALL)) for _ in range(2))
    assert first == again
    assert asyncio.run(general_demonstrations(replace(SMALL, seed=SMALL.seed + 1))) != first


def test_its_devices_are_in_no_test_and_in_no_study() -> None:
    last = FIRST_DEVICE + GeneralAgentConfig().devices
    assert 64 < FIRST_DEVICE < last <= 10_000 < UNSEEN


def test_the_command_trains_and_saves(tmp_path: Path) -> None:
    few = ["--devices", "4", "--device-episodes", "8", "--phone-episodes", "38", "--steps", "3"]
    words = [str(DEMOS / "train_general_agent.py"), "--out", str(tmp_path / "agent"), *few]
    done = run_here(words, cwd=tmp_path, env=environment())
    assert done.returncode == 0 and done.stdout.startswith("3 steps, "), done.stderr
    trained, before = LocalModel.load(tmp_path / "agent"), LocalModel.load()
    pairs = zip(trained.base_weights().values(), before.base_weights().values(), strict=True)
    assert any(not bool((a == b).all()) for a, b in pairs)
    failed = run_here([*words, "--start", "nowhere"], cwd=tmp_path, env=environment())
    assert failed.returncode == 2 and "no agent in nowhere" in failed.stderr


def test_the_shipped_one_was_trained_with_the_defaults() -> None:
    done, config = shipped_training(), GeneralAgentConfig()
    assert done.steps == config.stage1.steps and done.samples > 10 * done.steps
    assert done.cpu_seconds < 15 * 60


def test_commands_know_it_by_name() -> None:
    section = ModelSection(name="general")
    assert kind_of(section) == "base"
    assert describe_model(section) == "the general agent that ships (in this process)"
    assert load_in_process(section).name == "general-agent"
    with pytest.raises(ConfigError, match="expected base, general, smollm2"):
        kind_of(ModelSection(name="specific"))
