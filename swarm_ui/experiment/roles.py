"""The critic, the judge of single actions, the adversary and the teacher of a training run."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from swarm_ui.action import Action
from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.credit import Credit, Critic, Judge
from swarm_ui.errors import ConfigError, LearningError, SwarmError
from swarm_ui.experiment.benchmarks import wrapped
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.mistakes import asks_model, critic_kind
from swarm_ui.experiment.model_settings import Agent, Language
from swarm_ui.experiment.models import model_of_process, open_model
from swarm_ui.experiment.plugins import described, function_of
from swarm_ui.experiment.stored import spending
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED, adapter_folder
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import (
    Adversary,
    LLMAdversary,
    LLMTeacher,
    ScriptedAdversary,
    ScriptedTeacher,
    Teacher,
)
from swarm_ui.optim.credit.learned import learned_critic
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode


class TrainingRoles(NamedTuple):
    """The roles other than the agents in a training run, as arguments of the trainer."""

    critic: Critic | None = None
    """``None``: the outcome is the credit of every message."""
    judge: Judge | None = None
    """``None``: the critic judges single actions. Without a critic and a judge, none is judged."""
    adversary: Adversary | None = None
    teacher: Teacher | None = None
    """``None``: only agents' own actions are learned."""


def describe_credit(config: Config) -> str:
    """The source of the credit, described for tables and notes."""
    asked = config.critic.model
    return {
        "scripted": "scripted critic",
        "outcome": "outcome of the episode",
        "llm": f"critic: {asked.name if asked else 'the agents’ own model'}",
        "learned": f"learned critic in '{config.critic.folder}'",
    }.get(critic_kind(config), f"critic {critic_kind(config)}")


@asynccontextmanager
async def open_critics(
    config: Config,
    model: Any,
    in_workers: Agent | Language | None = None,
    run: RunDirectory | None = None,
) -> AsyncIterator[TrainingRoles]:
    """The critic, the judge, the adversary and the teacher of a training run, with the models that
    they ask.

    ``model`` is the agents' own, which a critic of the kind ``llm`` asks if no other is named.
    ``in_workers``: the agents' base model in workers, each of which then makes its own learned
    critic. Earlier calls of the critic in the ``run`` count in its budget."""
    section, kind = config.critic, critic_kind(config)
    solver = config.env.solver()
    solving: Any = None if solver is None else wrapped(solver, config.env.wrap)
    async with AsyncExitStack() as opened:
        other = model
        if asks_model(config) and section.model is not None:
            other = await opened.enter_async_context(open_model(section.model))
            if run is not None:
                opened.enter_context(spending(other, run, role="critic"))

        async def source(name: str) -> Any:
            """A critic, which may judge single actions too."""
            if name == "scripted":
                return ScriptedCritic(solving)
            if name == "llm":
                return LLMCritic(other)
            if name != "learned":
                return None if name in ("", "outcome") else _UserCritic(name)
            folder = adapter_folder(section.folder)
            asked = await opened.enter_async_context(open_model(_critic_base(config, folder)))
            return learned_critic(asked, folder)

        critic: Critic | None = await source(kind)
        judge: Any = critic if section.judge == kind else await source(section.judge)
        if in_workers is not None and (section.judge or kind) == "learned":
            judge = _WorkerJudge(_critic_in_workers(config, in_workers))
        if section.trust and critic is not None:
            judge, critic = judge or critic, Trust(critic)
        adversary: Adversary | None = None
        if section.adversary != "none":
            adversary = LLMAdversary(other) if section.adversary == "llm" else ScriptedAdversary()
        teacher: Teacher | None = None
        if section.teacher != "none":
            asks = section.teacher == "llm"
            teacher = LLMTeacher(other) if asks else ScriptedTeacher(solving)
        yield TrainingRoles(critic, judge, adversary, teacher)


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


class _WorkerJudge:
    """A judge that each worker makes for itself, when it grades its first action there."""

    def __init__(self, make: Callable[[], Judge]) -> None:
        self._judge = make

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        return await self._judge().grade(observation, actions, state)


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
            f"'{config.model.name}'; expected {' or '.join(PRETRAINED)}, or agents that use the "
            "critic's own model (model.name=FOLDER)"
        )
    return Language(name=base)


def _critic_in_workers(config: Config, of_agents: Agent | Language) -> Callable[[], Judge]:
    """The learned critic of the configuration, made by each worker.

    If it was trained on the agents' base model, a worker holds only one copy of that model.
    """
    folder, agents = adapter_folder(config.critic.folder).absolute(), config.model
    base: Agent | Language = _critic_base(config, folder)
    if isinstance(agents, Language) and not agents.vision:
        base = of_agents  # else its weights are others
    return partial(_made_in_worker, base, folder)


@cache
def _made_in_worker(base: Agent | Language, folder: Path) -> Judge:
    try:
        return learned_critic(model_of_process(base), folder)
    except (OSError, ConfigError) as error:
        raise ConfigError(
            f"a worker on {platform.node()} cannot load the learned critic '{folder}': {error}. To "
            "do: every machine needs the critic and its base model under the path of the command"
        ) from error
