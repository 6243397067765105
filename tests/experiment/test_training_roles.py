"""Roles beside the agents in training: who is opened, and what a folder cannot make us import."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from graph_fakes import SCREEN, HashModel
from local_models import asking, disturb, requests
from msgspec.structs import replace
from random_critic import save_random_critic
from tiny_causal import save_llama

from swarm_ui.action import Action
from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.credit import Judge
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import models
from swarm_ui.experiment import roles as roles_module
from swarm_ui.experiment.benchmarks import ENVIRONMENTS
from swarm_ui.experiment.config import Config, Critic
from swarm_ui.experiment.mistakes import critic_mistakes
from swarm_ui.experiment.model_settings import Endpoint, Language
from swarm_ui.experiment.models import check_adapters
from swarm_ui.experiment.roles import open_critics
from swarm_ui.nodes import CausalModel, PublishedModel
from swarm_ui.optim.credit.critic import name_of

pytest.importorskip("torch")


LOADED: list[CausalModel] = []
"""The models that were made by :func:`loaded`."""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models are counted, and none of a test stays in this process."""
    monkeypatch.setattr(models, "load_in_process", loaded)
    yield
    LOADED.clear()
    for made in (models.model_of_process, roles_module._made_in_worker):
        made.cache_clear()


def loaded(section: Language) -> CausalModel:
    LOADED.append(CausalModel.from_pretrained(Path(section.name)))
    return LOADED[-1]


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


ACTIONS = [Action(action_type="click", index=k) for k in range(2)]


async def test_a_learned_critic_runs_on_the_agents_own_model(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    folder = save_random_critic(base, tmp_path / "critics")
    config = Config(
        model=Language(name=str(base)),
        critic=Critic(kind="learned", folder=str(folder), judge="scripted"),
    )
    assert not list(critic_mistakes(config))
    async with open_critics(config, object()) as roles:
        assert name_of(roles.critic).startswith("learned critic")
        assert "scripted" in name_of(roles.judge)
        assert roles.adversary is not None


def test_the_critic_of_this_package_is_named() -> None:
    section = Critic(kind="learned", folder="smollm2-critic", judge="scripted")
    assert not list(critic_mistakes(Config(critic=section)))


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


@pytest.mark.parametrize(
    "section",
    [Critic(kind="llm"), Critic(adversary="llm"), Critic(teacher="llm")],
)
def test_the_embedded_agent_cannot_judge_in_words(section: Critic) -> None:
    [(name, mistake)] = critic_mistakes(Config(critic=section))
    assert name == "critic.model"
    assert "name a language model" in mistake


async def test_a_scripted_teacher_is_of_the_environment() -> None:
    for name in ("phone", "invented", "phone-split"):
        section = Critic(teacher="scripted")
        config = Config(env=ENVIRONMENTS[name](), critic=section)
        assert not list(critic_mistakes(config))
        async with open_critics(config, object()) as roles:
            assert roles.teacher is not None and roles.teacher.name == "scripted teacher"
            assert sent(roles.teacher).name == roles.teacher.name  # to workers


@pytest.mark.parametrize(
    ("environment", "section", "told"),
    [
        ("miniwob", Critic(teacher="scripted", kind="llm", model=Endpoint(name="m", url="http://h/v1")),
         "'miniwob' has no solver"),
        ("phone", Critic(teacher="scripted", kind="outcome"), "needs a judge"),
    ],
)  # fmt: skip
def test_a_teacher_that_cannot_be_had(environment: str, section: Critic, told: str) -> None:
    config = Config(env=ENVIRONMENTS[environment](), critic=section)
    [(name, mistake)] = critic_mistakes(config)
    assert name == "critic.teacher" and told in mistake


async def test_a_language_model_can_be_critic_and_teacher() -> None:
    section = Critic(teacher="llm", kind="llm")
    config = Config(model=Endpoint(name="gpt", url="http://localhost:1/v1"), critic=section)
    assert not list(critic_mistakes(config))
    async with open_critics(config, HashModel()) as roles:
        assert roles.teacher is not None and roles.teacher.name.startswith("LLM teacher")


async def test_the_outcome_needs_no_role(tmp_path: Path) -> None:
    config = Config(critic=Critic(kind="outcome", adversary="none"))
    async with open_critics(config, object()) as roles:
        assert (roles.critic, roles.judge, roles.adversary) == (None, None, None)


async def test_a_worker_holds_one_base_for_the_agents_and_a_learned_critic(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    folder = save_random_critic(base, tmp_path / "critics")
    config = Config(
        model=Language(name=str(base)),
        critic=Critic(kind="learned", folder=str(folder)),
    )
    learner = CausalModel.named(str(base))
    for seed, name in enumerate(("critic", "other")):  # an agents' adapter of the critic's name
        learner.add_adapter(name, rank=2)
        disturb(learner, name, seed=seed)
    questions = asking("critic@1", requests(2))
    asked = [replace(question, max_tokens=6) for question in questions]
    async with open_critics(config, learner) as roles:
        assert isinstance(roles.critic, Judge) and roles.judge is None
        expected = await roles.critic.grade(SCREEN, ACTIONS, None)
        with pytest.raises(ConfigError, match="its weights are not sent"):
            sent(roles.critic)
    assert any(0 < value < 1 for value in expected if value is not None)
    replies = [reply.text for reply in await learner.generate(asked)]

    LOADED.clear()
    section = Language(name=str(base))
    published = PublishedModel(learner, partial(models.model_of_process, section))
    published.publish()
    async with open_critics(config, learner, section) as roles:
        assert name_of(roles.critic).startswith("learned critic")
        for _ in range(2):  # every iteration sends both anew
            agents, judge = sent((published, roles.judge))
            assert await judge.grade(SCREEN, ACTIONS, None) == expected
            assert [reply.text for reply in await agents.generate(asked)] == replies
    assert len(LOADED) == 2  # one to give credit here, one to judge there


async def test_a_critic_that_a_worker_cannot_read_is_one_line(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "base")
    folder = save_random_critic(base, tmp_path / "critics")
    config = Config(
        model=Language(name=str(base)), critic=Critic(kind="learned", folder=str(folder))
    )
    section = Language(name=str(base))
    async with open_critics(config, object(), section) as roles:
        judge: Judge = sent(roles.judge)
        kept = folder.rename(tmp_path / "elsewhere")
        with pytest.raises(
            ConfigError, match=r"worker on .* cannot load .*critics'.*under"
        ) as told:
            await judge.grade(SCREEN, ACTIONS, None)
        assert "\n" not in str(told.value)
        kept.rename(folder)
        assert await judge.grade(SCREEN, ACTIONS, None)  # a failure is not kept
        shutil.rmtree(folder)
    with pytest.raises(ConfigError, match="no critic in"):
        async with open_critics(config, object(), section):
            pass
