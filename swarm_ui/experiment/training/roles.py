"""The critic, the judge of single actions, the adversary and the teacher of a training run."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm_ui.action import Action
from swarm_ui.adapter_metadata import CRITIC_FILE, read_metadata
from swarm_ui.credit import Critic, Judge
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.config import Config, CriticSection, Finding, ModelSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.models import (
    kind_of,
    learned_adapters,
    model_of_process,
    open_model,
)
from swarm_ui.experiment.placement.spending import spending
from swarm_ui.experiment.plugins.wrapping import wrapped
from swarm_ui.nodes.models.pretrained.catalogue import CRITIC_ADAPTERS, PRETRAINED, adapter_folder
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import (
    Adversary,
    LLMAdversary,
    LLMTeacher,
    ScriptedAdversary,
    ScriptedTeacher,
    Teacher,
)
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.optim.credit.learned import LearnedCritic

_ONLY_WATCH = ("recorder", "fault-injector")
"""Wrappers that change neither screens nor actions."""


class WorkerBase(NamedTuple):
    """The base model of the agents in workers that play."""

    name: str
    section: ModelSection
    """The settings without adapters; see :func:`~swarm_ui.experiment.models.model_of_process`."""


@dataclass(frozen=True, slots=True)
class TrainingRoles:
    """The roles other than the agents in a training run."""

    critic: Critic | None = None
    """``None``: the outcome is the credit of every message."""
    judge: Judge | None = None
    """``None``: the critic judges single actions. Without a critic and a judge, none is judged."""
    adversary: Adversary | None = None
    teacher: Teacher | None = None
    """``None``: only agents' own actions are learned."""


def critic_kind(config: Config) -> str:
    """``scripted``, ``llm``, ``learned`` or ``outcome``, after the default is filled in."""
    if config.critic.kind:
        return config.critic.kind
    return "scripted" if spec_of(config.environment.name).solver is not None else "outcome"


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
    if "scripted" in kinds and spec_of(config.environment.name).solver is None:
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
    if section.teacher == "scripted" and spec_of(name).solver is None:
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
    config: Config,
    model: Any,
    in_workers: WorkerBase | None = None,
    run: RunDirectory | None = None,
) -> AsyncIterator[TrainingRoles]:
    """The critic, the judge, the adversary and the teacher of a training run, with the models that
    they ask.

    Args:
        config: the settings, which were checked with :func:`critic_findings`.
        model: the agents' own model, which a critic of the kind ``llm`` asks if no other is named.
        in_workers: the agents' base model in workers, if workers play the episodes; each worker
            then makes its own learned critic. ``None``: this process plays.
        run: the folder of the run, whose earlier calls of the critic count in its budget.

    Raises:
        ConfigError: a model or the folder of a critic cannot be loaded.
        ModelError: an endpoint does not answer.
    """
    section = config.critic
    async with AsyncExitStack() as opened:
        other: Any = None
        wanted = {critic_kind(config), section.judge}
        if asks_model(config):
            other = model
            if section.model or section.url:
                other = await opened.enter_async_context(open_model(_model_section(section)))
                if run is not None:
                    opened.enter_context(spending(other, run, role="critic"))
        made: dict[str, Any] = {}
        if "scripted" in wanted:
            made["scripted"] = ScriptedCritic(_solver(config))
        if "llm" in wanted:
            made["llm"] = LLMCritic(other)
        if "learned" in wanted:
            folder = adapter_folder(section.model)
            if in_workers is not None:
                _check_critic(folder)
            asked = await opened.enter_async_context(open_model(_critic_base(config, folder)))
            made["learned"] = _learned_critic(asked, folder)
        critic, judge = made.get(critic_kind(config)), made.get(section.judge)
        if in_workers is not None and (section.judge or critic_kind(config)) == "learned":
            judge = _WorkerJudge(_critic_in_workers(config, in_workers))
        if section.trust and critic is not None:
            judge, critic = judge or critic, Trust(critic)
        adversary: Adversary | None = None
        if section.adversary == "llm":
            adversary = LLMAdversary(other)
        elif section.adversary == "scripted":
            adversary = ScriptedAdversary()
        teacher: Teacher | None = None
        if section.teacher == "llm":
            teacher = LLMTeacher(other)
        elif section.teacher == "scripted":
            teacher = ScriptedTeacher(_solver(config))
        yield TrainingRoles(critic, judge, adversary, teacher)


def _solver(config: Config) -> Callable[[], Any]:
    """Makes the environment in which scripted critic and teacher play episodes again: with the
    wrappers that change screens or actions."""
    solver = spec_of(config.environment.name).solver
    assert solver is not None, "checked by critic_findings"
    texts = [text for text in config.environment.wrap if text.split(":")[0] not in _ONLY_WATCH]
    return wrapped(solver(), texts)


class _WorkerJudge:
    """A judge that each worker makes for itself, when it grades its first action there."""

    def __init__(self, make: Callable[[], Judge]) -> None:
        self._judge = make

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        return await self._judge().grade(observation, actions, state)


def _model_section(section: CriticSection) -> ModelSection:
    return ModelSection(
        name=section.model or "base", url=section.url, key_env=section.key_env,
        max_calls=section.max_calls, max_tokens_total=section.max_tokens_total,
    )  # fmt: skip


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


def _learned_critic(model: Any, folder: Path, **options: str) -> LearnedCritic:
    with _needs_train():
        from swarm_ui.optim.credit.learned import learned_critic
    return learned_critic(model, folder, **options)


def _check_critic(folder: Path) -> None:
    """Raise ``ConfigError`` for a wrong folder before workers start."""
    with _needs_train():
        from swarm_ui.optim.credit.learned import read_card
    read_card(folder)


def _critic_in_workers(config: Config, agents_base: WorkerBase) -> Callable[[], Judge]:
    """The learned critic of the configuration, made by each worker.

    If it was trained on the agents' base model, a worker holds only one copy of that model.
    """
    with _needs_train():
        from swarm_ui.optim.credit.learned import ADAPTER
    folder, agents = adapter_folder(config.critic.model).absolute(), config.model
    section = _critic_base(config, folder)
    base = section
    if kind_of(agents) == "local" and not (agents.quantize or agents.vision):
        base = agents_base.section  # else its weights are others
    adapter = ADAPTER
    while adapter in learned_adapters(config):
        adapter += "_"
    return partial(_made_in_worker, base, folder, adapter)


@cache
def _made_in_worker(base: ModelSection, folder: Path, adapter: str) -> Judge:
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
