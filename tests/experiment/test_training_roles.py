"""Roles beside the agents in training: who is opened, and what a folder cannot make us import."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from random_critic import save_random_critic
from tiny_causal import save_llama

from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS
from swarm_ui.experiment.config import Config, Critic
from swarm_ui.experiment.mistakes import critic_mistakes
from swarm_ui.experiment.model_settings import Language
from swarm_ui.experiment.models import check_adapters
from swarm_ui.experiment.roles import open_critics
from swarm_ui.optim.credit.critic import name_of

pytest.importorskip("torch")


async def test_a_learned_critic_runs_on_the_agents_own_model(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    folder = save_random_critic(base, tmp_path / "critics")
    config = Config(
        model=Language(name=str(base)), critic=Critic(kind="learned", folder=str(folder))
    )
    assert not list(critic_mistakes(config))
    async with open_critics(config, object()) as roles:
        assert name_of(roles.critic).startswith("learned critic")
        assert roles.adversary is not None


def test_agents_refuse_a_critic_as_their_adapter(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    for critic in ("smollm2-critic", str(save_random_critic(base, tmp_path / "critic"))):
        section = Language(name=str(base), adapters=critic)
        with pytest.raises(ConfigError, match="is a critic, which scores replies"):
            check_adapters(section, 2)


async def test_a_critics_folder_cannot_name_code_to_import(tmp_path: Path) -> None:
    folder = save_random_critic(save_llama(tmp_path / "base"), tmp_path / "critics")
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    write_metadata(folder, AdapterMetadata(base_model=f"{tmp_path.name}.evil:make"))
    config = Config(critic=Critic(kind="learned", folder=str(folder)))
    with pytest.raises(
        ConfigError, match=r"was trained on '.*evil:make', and the agents use 'base'"
    ):
        async with open_critics(config, object()):
            pass


async def test_a_scripted_teacher_is_of_the_environment() -> None:
    for name in ("phone", "invented", "phone-split"):
        section = Critic(teacher="scripted")
        config = Config(env=ENVIRONMENTS[name](), critic=section)
        assert not list(critic_mistakes(config))
        async with open_critics(config, object()) as roles:
            assert roles.teacher is not None and roles.teacher.name == "scripted teacher"
            sent = pickle.loads(pickle.dumps(roles.teacher))  # to workers
            assert sent.name == roles.teacher.name
