"""Roles beside the agents in training: who is opened, and what a folder cannot make us import."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_llama import save_llama

from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, CriticSection, ModelSection
from swarm_ui.experiment.training.roles import critic_findings, open_critics
from swarm_ui.nodes import CausalModel
from swarm_ui.optim.credit.learned.critic_files import CriticCard, save_critic

pytest.importorskip("torch")


def critic_folder(folder: Path, base: Path) -> Path:
    """An adapter that changes nothing, with the card of a critic."""
    model = CausalModel.from_pretrained(base)
    model.add_adapter("critic", rank=2)
    save_critic(model, "critic", CriticCard(), folder)
    return folder


async def test_a_learned_critic_runs_on_the_agents_own_model(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    folder = critic_folder(tmp_path / "critics", base)
    config = Config(
        model=ModelSection(name=str(base)),
        critic=CriticSection(kind="learned", model=str(folder), judge="scripted"),
    )
    assert not list(critic_findings(config))
    async with open_critics(config, object()) as roles:
        assert roles.critic is not None and roles.critic.name.startswith("learned critic")
        assert roles.judge is not None and "scripted" in roles.judge.name
        assert roles.adversary is not None


async def test_a_critics_folder_cannot_name_code_to_import(tmp_path: Path) -> None:
    folder = critic_folder(tmp_path / "critics", save_llama(tmp_path / "base"))
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    write_metadata(folder, AdapterMetadata(base_model=f"{tmp_path.name}.evil:make"))
    config = Config(critic=CriticSection(kind="learned", model=str(folder)))
    with pytest.raises(
        ConfigError, match=r"was trained on '.*evil:make', and the agents use 'base'"
    ):
        async with open_critics(config, object()):
            pass


@pytest.mark.parametrize("section", [CriticSection(kind="llm"), CriticSection(adversary="llm")])
def test_the_embedded_agent_cannot_judge_in_words(section: CriticSection) -> None:
    [(name, mistake)] = critic_findings(Config(critic=section))
    assert name == ("critic", "model")
    assert "name a language model with --critic-model" in mistake


async def test_the_outcome_needs_no_role(tmp_path: Path) -> None:
    config = Config(critic=CriticSection(kind="outcome", adversary="none"))
    async with open_critics(config, object()) as roles:
        assert (roles.critic, roles.judge, roles.adversary) == (None, None, None)
