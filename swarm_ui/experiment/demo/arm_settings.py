"""The team and the model of an arm of a demo's run, as a configuration of the command line."""

from __future__ import annotations

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, ModelSection, TeamSection
from swarm_ui.experiment.settings import Settings, restored
from swarm_ui.experiment.teams import Arm, base_arms, endpoint_arms, rollout_arm, trained_arms
from swarm_ui.storage.run_directory import RunDirectory

_KEYS = frozenset({"env", "agents", "rounds", "density", "critic_noise"})
"""Settings that every run of the demo records."""


def is_demo_run(run: RunDirectory) -> bool:
    """Whether a run was made by the demo."""
    return run.config().keys() >= _KEYS


def arm_configuration(run: RunDirectory, file: str) -> Config:
    """The configuration of the arm whose episodes are in ``traces/<file>.jsonl``.

    It contains no edges, because those of the recorded decision are used. Adapters are those at the
    end of training, also for episodes of earlier iterations.

    Raises:
        ConfigError: no demo made the run, or it has no such arm.
    """
    settings = restored(run.config(), str(run.path))
    arm = _arm(settings, file)
    team = TeamSection(
        agents=arm.agents,
        rounds=arm.rounds,
        views="same" if arm.trained and file.startswith("web-") else arm.views,
        vote=arm.vote,
        temperature=arm.temperature,
        max_tokens=arm.max_tokens,
    )
    return Config(team=team, model=_model(settings, run, trained=arm.trained))


def _arm(settings: Settings, file: str) -> Arm:
    if file.startswith("train-"):
        return rollout_arm(settings, ())
    if "-after-" in file:
        return Arm(name=file, label="after some iterations", trained=not file.endswith("-after-0"))
    given = settings.given_model
    arms = endpoint_arms(settings) if given else base_arms(settings)
    arms += [] if given else trained_arms(settings, (), "")
    for arm in arms:
        if file.endswith(f"-{arm.name}"):
            return arm
    known = ", ".join(arm.name for arm in arms)
    raise ConfigError(f"'{file}' is not an arm of this run; its arms are {known}")


def _model(settings: Settings, run: RunDirectory, *, trained: bool) -> ModelSection:
    if settings.given_model:
        return ModelSection(
            name=settings.model or "",
            url=settings.base_url or "",
            prompt_format=settings.prompt_format,
            max_calls=settings.max_calls,
        )
    own = str(run.path / "agent") if settings.from_scratch else "base"
    adapters = str(run.adapters) if trained else ""
    return ModelSection(name=settings.agent or own, adapters=adapters)
