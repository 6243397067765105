"""The team and the model of an arm of a demo's run, as a configuration of the command line."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Team
from swarm_ui.experiment.model_settings import Agent, AnyModel, Endpoint, Language
from swarm_ui.experiment.settings import Settings, restored
from swarm_ui.experiment.teams import (
    GENERAL,
    Arm,
    base_arms,
    endpoint_arms,
    general_arm,
    rollout_arm,
    trained_arms,
    trained_model_arms,
    untrained_model_arms,
)
from swarm_ui.storage.run_directory import RunDirectory

_KEYS = frozenset({"env", "agents", "rounds", "density", "critic_noise"})
"""Settings that every run of the demo records."""


def is_of_a_demo(config: Mapping[str, object]) -> bool:
    """Whether these are the settings of a run that the demo made."""
    return config.keys() >= _KEYS


def is_demo_run(run: RunDirectory) -> bool:
    """Whether a run was made by the demo."""
    return is_of_a_demo(run.config())


def arm_configuration(run: RunDirectory, file: str) -> Config:
    """The configuration of the arm whose episodes are in ``traces/<file>.jsonl``.

    It contains no edges, because those of the recorded decision are used. Adapters are those at the
    end of training, also for episodes of earlier iterations.

    Raises:
        ConfigError: no demo made the run, or it has no such arm.
    """
    settings = restored(run.config(), str(run.path))
    arm = _arm(settings, file)
    # A team that was trained on the phone is tried on pages in the order of the page.
    page_order = settings.env == "phone" and arm.trained and file.startswith("web-")
    team = Team(
        agents=arm.agents,
        rounds=arm.rounds,
        views="same" if page_order else arm.views,
        vote=arm.vote,
        temperature=arm.temperature,
        max_tokens=arm.max_tokens,
    )
    return Config(team=team, model=_model(settings, run, arm))


def _arm(settings: Settings, file: str) -> Arm:
    if file.startswith("train-"):
        return rollout_arm(settings, ())
    if "-after-" in file:
        return Arm(name=file, label="after some iterations", trained=not file.endswith("-after-0"))
    arms = _tested(settings)
    for arm in arms:
        if file.endswith(f"-{arm.name}"):
            return arm
    known = ", ".join(arm.name for arm in arms)
    raise ConfigError(
        f"the trace file '{file}' belongs to no arm of this run; the names of its files end in "
        f"one of: {known}"
    )


def _tested(settings: Settings) -> list[Arm]:
    """The arms that a run tests, without their edges."""
    if settings.trains_model:
        return [*untrained_model_arms(settings), *trained_model_arms(settings, (), "")]
    if settings.given_model:
        return endpoint_arms(settings)
    return [*base_arms(settings), general_arm(), *trained_arms(settings, (), "")]


def _model(settings: Settings, run: RunDirectory, arm: Arm) -> AnyModel:
    trained = str(run.adapters) if arm.trained else ""
    if settings.base_url:
        return Endpoint(
            name=settings.model or "", url=settings.base_url,
            prompt_format=settings.prompt_format, max_calls=settings.max_calls,
        )  # fmt: skip
    if settings.given_model:
        return Language(
            name=settings.model or "",
            adapters=trained or settings.adapters,
            prompt_format=settings.prompt_format,
        )
    if arm.name == GENERAL:
        return Agent(name="general")
    return Agent(name=settings.agent or "base", adapters=trained)
