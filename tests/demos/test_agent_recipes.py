"""The recipes of the included agents: what they are shown, and that they train and save."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")


from demos import train_adapter
from demos.base_agent import recipes
from demos.base_agent.recipes import (
    FIRST_DEVICE,
    TRAINING_FILE,
    BaseAgentConfig,
    GeneralAgentConfig,
    general_demonstrations,
    make_base_agent,
    make_general_agent,
    shipped_training,
)
from demos.base_agent.training import Stage1Config
from swarm_ui.environments.phone.invented import UNSEEN
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.model_settings import Agent, model_named
from swarm_ui.experiment.models import describe_model, load_in_process
from swarm_ui.nodes import LocalModel
from swarm_ui.optim.stage1 import read_corpus
from swarm_ui.rollout import Job

SMALL = GeneralAgentConfig(devices=4, device_episodes=12, phone_episodes=38)


def test_it_is_shown_the_devices_and_all_training_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Job] = []
    solve = recipes.solver_steps

    async def watched(environment, jobs, rng):  # type: ignore[no-untyped-def]
        shown.extend(jobs)
        return await solve(environment, jobs, rng)

    monkeypatch.setattr(recipes, "solver_steps", watched)
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


def differs(one: LocalModel, other: LocalModel) -> bool:
    pairs = zip(one.base_weights().values(), other.base_weights().values(), strict=True)
    return any(not bool((a == b).all()) for a, b in pairs)


def test_the_general_agent_continues_another(tmp_path: Path) -> None:
    config = replace(SMALL, stage1=replace(SMALL.stage1, steps=3))
    done = make_general_agent(config, tmp_path)
    assert done.steps == 3 and (tmp_path / TRAINING_FILE).is_file()
    assert differs(LocalModel.load(tmp_path), LocalModel.load())


@pytest.mark.slow
def test_two_processes_train_one_base_agent_alike(tmp_path: Path) -> None:
    config = BaseAgentConfig(demonstrations=1, stage1=Stage1Config(steps=4))
    for name in ("one", "same"):
        make_base_agent(config, tmp_path / name)
    make_base_agent(replace(config, processes=1), tmp_path / "alone")
    one, same, alone = (LocalModel.load(tmp_path / n) for n in ("one", "same", "alone"))
    assert not differs(one, same) and differs(one, alone)


async def test_the_corpora_of_the_adapter_for_smollm2(tmp_path: Path) -> None:
    await train_adapter.corpora(tmp_path, scale=0.001)
    found = {p.name: list(read_corpus(p)) for p in tmp_path.iterdir()}
    assert len(found) == 6 and all(found.values())
    assert {s.prompt_format for samples in found.values() for s in samples} == {"compact"}


@pytest.mark.slow
def test_the_recipe_by_command(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for agent, more in (("base", []), ("general", ["--start", str(tmp_path / "base")])):
        line = [sys.executable, "-m", "demos.base_agent", agent, "--steps", "2", *more]
        subprocess.run([*line, "--out", str(tmp_path / agent)], cwd=root, check=True)
        assert LocalModel.load(tmp_path / agent)


def test_the_shipped_one_was_trained_with_the_defaults() -> None:
    done, config = shipped_training(), GeneralAgentConfig()
    assert done.steps == config.stage1.steps and done.samples > 10 * done.steps
    assert done.cpu_seconds < 15 * 60


def test_commands_know_it_by_name() -> None:
    section = model_named("general")
    assert isinstance(section, Agent)
    assert describe_model(section) == "the general agent that ships (in this process)"
    assert load_in_process(section).name == "general-agent"
    with pytest.raises(ConfigError, match="expected base, general, smollm2"):
        model_named("specific")
