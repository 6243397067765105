"""The critic, the adversary and the teacher of a training run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.credit import Credit, Critic, Judge
from swarm_ui.errors import ConfigError, LearningError, SwarmError
from swarm_ui.experiment.benchmarks import wrapped
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.mistakes import asks_model, critic_kind
from swarm_ui.experiment.model_settings import Language
from swarm_ui.experiment.models import open_model
from swarm_ui.experiment.plugins import described, function_of
from swarm_ui.experiment.stored import spending
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED, adapter_folder
from swarm_ui.optim.adversary import (
    Adversary,
    ScriptedAdversary,
    ScriptedTeacher,
    Teacher,
)
from swarm_ui.optim.credit.critic import ScriptedCritic
from swarm_ui.optim.credit.learned import learned_critic
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode


class TrainingRoles(NamedTuple):
    """The roles other than the agents in a training run, as arguments of the trainer."""

    critic: Critic | None = None
    """``None``: the outcome is the credit of every message."""
    judge: Judge | None = None
    """``None``: the critic judges single actions. Without a critic, none is judged."""
    adversary: Adversary | None = ScriptedAdversary()
    teacher: Teacher | None = None
    """``None``: only agents' own actions are learned."""


@asynccontextmanager
async def open_critics(
    config: Config, model: Any, run: RunDirectory | None = None
) -> AsyncIterator[TrainingRoles]:
    """The roles of a training run, with the models that they ask.

    ``model`` is the agents' own, which a critic of the kind ``llm`` asks if no other is named.
    Earlier calls of the critic in the ``run`` count in its budget."""
    section, kind = config.critic, critic_kind(config)
    solver = config.env.solver()
    solving: Any = None if solver is None else wrapped(solver, config.env.wrap)
    async with AsyncExitStack() as opened:
        other = model
        if asks_model(config) and section.model is not None:
            other = await opened.enter_async_context(open_model(section.model))
            if run is not None:
                opened.enter_context(spending(other, run, role="critic"))
        critic: Any = None
        if kind == "learned":
            folder = adapter_folder(section.folder)
            asked = await opened.enter_async_context(open_model(_critic_base(config, folder)))
            critic = learned_critic(asked, folder)
        elif kind == "scripted":
            critic = ScriptedCritic(solving)
        elif kind != "outcome":
            critic = LLMCritic(other) if kind == "llm" else _UserCritic(kind)
        teacher = ScriptedTeacher(solving) if section.teacher == "scripted" else None
        if section.trust and critic is not None:
            yield TrainingRoles(Trust(critic), critic, teacher=teacher)
        else:
            yield TrainingRoles(critic, teacher=teacher)


class _UserCritic:
    """A critic of the user, whose exceptions name the file and line."""

    def __init__(self, name: str) -> None:
        self._critic = function_of("critics", name)
        self.name = str(getattr(self._critic, "name", name))

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        try:
            return list(await self._critic(episodes))
        except SwarmError:
            raise
        except Exception as error:
            raise LearningError(f"the critic '{self.name}' failed: {described(error)}") from error


def _critic_base(config: Config, folder: Path) -> Language:
    """The model that a learned critic was trained on: the agents' own, if it is a language model of
    this process, else the one that the folder names. The folder may be untrusted, and other names
    than those of the catalogue may refer to code."""
    if isinstance(config.model, Language):
        return Language(name=config.model.name, device=config.model.device)
    base = read_metadata(folder).base_model
    if base not in PRETRAINED:
        raise ConfigError(
            f"the learned critic in '{folder}' was trained on {base!r}, and the agents use "
            f"'{config.model.name}'; expected {' or '.join(PRETRAINED)}, or agents that use its "
            "model (model.name=FOLDER)"
        )
    return Language(name=base)
