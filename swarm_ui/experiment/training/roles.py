"""The critic, the judge of single actions, the adversary and the teacher of a training run."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from swarm_ui.adapter_metadata import CRITIC_FILE, read_metadata
from swarm_ui.credit import CreditAssigner
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.config import Config, CriticSection, Finding, ModelSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.models import kind_of, learned_adapters, model_of_process, open_model
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED
from swarm_ui.nodes.models.pretrained.shipped_adapters import CRITIC_ADAPTERS, adapter_folder
from swarm_ui.optim.credit.assigners.llm_critic import LLMCritic
from swarm_ui.optim.preferences.adversary import Adversary, LLMAdversary
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.preferences.teacher import LLMTeacher, Teacher


class WorkerBase(NamedTuple):
    """The base model of the agents in workers that play."""

    name: str
    section: ModelSection
    """The settings without adapters; see :func:`~swarm_ui.experiment.models.model_of_process`."""


@dataclass(frozen=True, slots=True)
class TrainingRoles:
    """The roles other than the agents in a training run."""

    critic: CreditAssigner | None = None
    """``None``: the outcome is the credit of every message."""
    judge: CreditAssigner | None = None
    """``None``: the critic judges single actions. Without a critic and a judge, none is judged."""
    adversary: Adversary | None = None
    teacher: Teacher | None = None
    """``None``: only agents' own actions are learned."""


def critic_kind(config: Config) -> str:
    """``scripted``, ``llm``, ``learned`` or ``outcome``, after the default is filled in."""
    if config.critic.kind:
        return config.critic.kind
    return "scripted" if spec_of(config.environment.name).critic is not None else "outcome"


def describe_credit(config: Config) -> str:
    """The source of the credit, described for tables and notes."""
    section = config.critic
    return {
        "scripted": "scripted critic",
        "outcome": "outcome of the episode",
        "llm": f"critic: {section.model or 'the agents’ own model'}",
        "learned": f"learned critic in '{section.model}'",
    }[critic_kind(config)]


def describe_teacher(config: Config) -> str:
    """Who shows right actions, described for tables."""
    asked = config.critic.model or "the agents’ own model"
    return {"scripted": "scripted teacher", "llm": f"teacher: {asked}", "none": "none"}[
        config.critic.teacher
    ]


def asks_model(config: Config) -> bool:
    """Whether a role asks a language model questions: all but a learned critic."""
    section = config.critic
    roles = (critic_kind(config), section.judge, section.adversary, section.teacher)
    return "llm" in roles


def critic_findings(config: Config) -> Iterator[Finding]:
    """Mistakes in the choice of critic, judge, adversary and teacher."""
    section, at = config.critic, ("critic", "kind")
    kinds = {critic_kind(config), section.judge}
    yield from _teacher_findings(config)
    if "scripted" in kinds and spec_of(config.environment.name).critic is None:
        yield at, (f"'{config.environment.name}' has no scripted critic; expected llm, learned or "
                   "outcome")  # fmt: skip
    if "learned" in kinds:
        if not section.model:
            yield at, ("a learned critic needs --critic-model: the folder of its adapter, or "
                       f"{' or '.join(CRITIC_ADAPTERS)}")  # fmt: skip
        elif not (adapter_folder(section.model) / CRITIC_FILE).is_file():
            yield ("critic", "model"), (f"no learned critic in '{section.model}': expected "
                                        "the folder OUT/final that swarm-ui critic wrote, or "
                                        f"{' or '.join(CRITIC_ADAPTERS)}")  # fmt: skip
        if "llm" in kinds:
            yield ("critic", "judge"), ("the model of a learned critic answers no questions; "
                                        "expected learned or scripted")  # fmt: skip
        for role in ("adversary", "teacher"):
            if getattr(section, role) == "llm":
                yield ("critic", role), ("the model of a learned critic writes no actions; "
                                         "expected scripted or none")  # fmt: skip
    elif asks_model(config) and not (section.model or section.url):
        if not _talks(config.model):
            problem = "the base and general agents answer decisions, not questions; "
            yield ("critic", "model"), problem + "name a language model with --critic-model"
    elif section.model or section.url:
        if not asks_model(config):
            yield ("critic", "model"), "nobody asks this model: give --critic llm as well"
        else:
            try:
                kind_of(_model_section(section))
            except ConfigError as error:
                yield ("critic", "model"), str(error)


def _teacher_findings(config: Config) -> Iterator[Finding]:
    section, name = config.critic, config.environment.name
    if section.teacher == "none":
        return
    if section.teacher == "scripted" and spec_of(name).teacher is None:
        yield ("critic", "teacher"), f"'{name}' has no scripted teacher; expected llm or none"
    if critic_kind(config) == "outcome" and not section.judge:
        problem = "what a teacher shows needs a judge, and the credit is the outcome; "
        yield ("critic", "teacher"), problem + "give --judge, or leave the teacher out"


def _talks(section: ModelSection) -> bool:
    """Whether a model may read chats; an unknown model is reported elsewhere."""
    try:
        return kind_of(section) not in ("base", "agent")
    except ConfigError:
        return True


@asynccontextmanager
async def open_critics(
    config: Config, model: Any, in_workers: WorkerBase | None = None
) -> AsyncIterator[TrainingRoles]:
    """The critic, the judge, the adversary and the teacher of a training run, with the models that
    they ask.

    Args:
        config: the settings, which were checked with :func:`critic_findings`.
        model: the agents' own model, which a critic of the kind ``llm`` asks if no other is named.
        in_workers: the agents' base model in workers, if workers play the episodes; each worker
            then makes its own learned critic. ``None``: this process plays.

    Raises:
        ConfigError: a model or the folder of a critic cannot be loaded.
        ModelError: an endpoint does not answer.
    """
    section = config.critic
    async with AsyncExitStack() as opened:
        made: dict[str, CreditAssigner | None] = {"outcome": None, "none": None, "": None}
        other: Any = None
        wanted = {critic_kind(config), section.judge}
        if asks_model(config):
            other = model
            if section.model or section.url:
                other = await opened.enter_async_context(open_model(_model_section(section)))
        for kind in wanted - made.keys():
            if kind == "scripted":
                make = spec_of(config.environment.name).critic
                made[kind] = make(config.environment.seed) if make else None
            elif kind == "llm":
                made[kind] = LLMCritic(other)
            elif in_workers is not None:
                made[kind] = _critic_in_workers(config, in_workers)
            else:
                folder = adapter_folder(section.model)
                base = _critic_base(config, folder)
                asked = await opened.enter_async_context(open_model(base))
                made[kind] = _learned_critic(asked, folder)
        adversary: Adversary | None = None
        if section.adversary == "llm":
            adversary = LLMAdversary(other)
        elif section.adversary == "scripted":
            adversary = ScriptedAdversary()
        teacher: Teacher | None = None
        if section.teacher == "llm":
            teacher = LLMTeacher(other)
        elif section.teacher == "scripted":
            show = spec_of(config.environment.name).teacher
            teacher = show() if show else None
        yield TrainingRoles(made[critic_kind(config)], made[section.judge], adversary, teacher)


def _model_section(section: CriticSection) -> ModelSection:
    return ModelSection(name=section.model or "base", url=section.url, key_env=section.key_env)


def model_sections(config: Config) -> list[ModelSection]:
    """The models that critic, adversary and teacher ask, apart from the agents' own."""
    section = config.critic
    named = bool(section.model or section.url)
    return [_model_section(section)] if named and asks_model(config) else []


def _critic_base(config: Config, folder: Path) -> ModelSection:
    """The model that a learned critic was trained on: the agents' own, if it is a language model of
    this process, else the model that the folder names.

    The folder may be untrusted, so this model must be in the catalogue: other names may refer to
    code. Raises ``ConfigError`` if it is not.
    """
    if kind_of(config.model) == "local":
        return ModelSection(name=config.model.name, device=config.model.device)
    base = read_metadata(folder).base_model
    if base not in PRETRAINED:
        raise ConfigError(
            f"the learned critic in '{folder}' was trained on {base!r}, and the agents use "
            f"'{config.model.name}'; expected {' or '.join(PRETRAINED)}, or agents that use the "
            "critic's own model (--model FOLDER)"
        )
    return ModelSection(name=base, device=config.model.device)


def _learned_critic(model: Any, folder: Path, **options: str) -> CreditAssigner:
    with _needs_train():
        from swarm_ui.optim.credit.assigners.learned_critic import learned_critic
    return learned_critic(model, folder, **options)


def _critic_in_workers(config: Config, agents_base: WorkerBase) -> CreditAssigner:
    """The learned critic of the configuration, made by each worker.

    If it was trained on the agents' base model, a worker holds only one copy of that model.
    """
    with _needs_train():
        from swarm_ui.optim.credit.assigners.learned_critic import ADAPTER, critic_name
        from swarm_ui.optim.credit.assigners.per_process_critic import PerProcessCritic
        from swarm_ui.optim.credit.learned.critic_files import read_card
    folder, agents = adapter_folder(config.critic.model).absolute(), config.model
    read_card(folder)  # a wrong folder is told before workers start
    section = _critic_base(config, folder)
    local = kind_of(agents) == "local"
    base = section
    if local and not (agents.quantize or agents.vision):  # else its weights are others
        base = agents_base.section
    adapter = ADAPTER
    while adapter in learned_adapters(config):
        adapter += "_"
    name = critic_name(folder, agents_base.name if local else section.name)
    return PerProcessCritic(partial(_made_in_worker, base, folder, adapter), name)


@cache
def _made_in_worker(base: ModelSection, folder: Path, adapter: str) -> CreditAssigner:
    try:
        return _learned_critic(model_of_process(base), folder, adapter=adapter)
    except (OSError, ConfigError) as error:
        raise ConfigError(
            f"a worker on {platform.node()} cannot load the learned critic '{folder}': {error}. To "
            "do: every machine needs the critic and its base model under the path of the command"
        ) from error


@contextmanager
def _needs_train() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtra("train", "a learned critic", error.name or "torch") from error
