"""Runs of the command line: set up, played, trained, and resumed."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from swarm_ui.credit import CreditAssigner
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import (
    Config,
    Draft,
    EnvironmentSection,
    Finding,
    checked,
    plain,
)
from swarm_ui.experiment.environments import environment_findings, spec_of
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.evaluation import Evaluator, Trial
from swarm_ui.experiment.models import (
    IN_PROCESS,
    adapter_names,
    kind_of,
    model_findings,
    open_model,
)
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.teams import Arm, agent_names, arm_of, configured_edges
from swarm_ui.rollout.pool import Job
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.metrics import IterationMetrics

_TRAINING_TEAM = {"agents": 4, "rounds": 3, "temperature": 0.8, "views": "shuffle"}
"""Defaults of a team that learns."""
_GRAPHS = 4
"""Default of ``[train] graphs`` where edges are learned."""
_FREE = {
    *(("model", name) for name in ("url", "key_env", "device", "max_calls", "max_tokens_total",
                                   "rate_limit", "concurrency", "timeout")),
    *(("run", name) for name in ("concurrency", "fail_under", "report")),
}  # fmt: skip
"""Settings that may change when a run is resumed: they do not affect the results."""


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """The settings of ``run`` or ``eval``."""

    config: Config
    splits: tuple[str, ...]
    seeds: tuple[int, ...]
    command: str

    def section(self, split: str, seed: int) -> EnvironmentSection:
        """The environment's settings for one split and seed."""
        return replace(self.config.environment, split=split, seed=seed)


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """The settings of ``train``."""

    config: Config
    critic: bool
    directory: RunDirectory | None = None
    """``None``: not begun."""


def find_mistakes(
    config: Config, valid: Collection[str], splits: Sequence[str] = ()
) -> Iterator[Finding]:
    """Mistakes that type checks do not find, reported before anything is written.

    Args:
        config: a configuration with correct types.
        valid: the sections to check.
        splits: used instead of the configuration's splits.
    """
    if "environment" in valid:
        yield from environment_findings(config.environment, splits)
    if "model" in valid:
        yield from model_findings(config.model, config.team.agents if "team" in valid else 0)
    if "team" in valid:
        try:
            configured_edges(config.team)
        except ConfigError as error:
            yield ("team", "edges"), str(error)
    if "run" in valid and config.run.out:
        out = Path(config.run.out)
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            problem = f"'{out}' exists and is not empty; choose another, or --resume it"
            yield ("run", "out"), problem


def check_config(draft: Draft, *, train: bool = False, splits: Sequence[str] = ()) -> Config:
    """The configuration, checked before anything is written or loaded.

    Args:
        draft: the settings that were given.
        train: check ``[train]`` too.
        splits: used instead of the configuration's splits.

    Raises:
        ConfigError: all its mistakes.
    """
    return checked(
        draft, train=train, find=lambda config, valid: find_mistakes(config, valid, splits)
    )


def check_training_config(draft: Draft) -> Config:
    """The configuration of a training run, with its own defaults for the team.

    Raises:
        ConfigError: all its mistakes.
    """
    for name, value in _TRAINING_TEAM.items():
        if ("team", name) not in draft.places:
            draft.put(("team", name), value, f"[team] {name}")
    learning, place = draft.values.get("train"), draft.values.get("environment")
    if isinstance(learning, dict) and learning.get("edges") == "learned":
        # One graph cannot be compared with others.
        draft.values["train"] = {"graphs": _GRAPHS, **learning}
    if isinstance(place, dict) and place.get("name") == "mind2web":
        if place.get("split") not in (None, "", "train"):
            where = draft.places.get(("environment", "split"), "split")
            draft.mistakes.append(f"{where}: only 'train' is trained on, the others are tests")
        draft.put(("environment", "split"), "train", "training")
    return check_config(draft, train=True)


def first_split(environment: EnvironmentSection) -> str:
    """The split that is played if none is named; empty: the environment has none."""
    spec = spec_of(environment.name)
    if environment.tasks and spec.split_of is not None:
        return spec.split_of(environment.tasks)
    return next(iter(spec.splits), "")


def open_environment(section: EnvironmentSection) -> AbstractAsyncContextManager[OpenEnvironment]:
    """Open the environment of a configuration, for ``async with``."""
    return spec_of(section.name).open(section)


async def begin(evaluation: EvaluationRun) -> RunDirectory:
    """Create the run's directory after checking that the model and environment are available.

    Raises:
        ModelError: the endpoint does not answer, or does not serve the model.
        EnvironmentFault: no emulator answers.
        ConfigError: the environment cannot be made.
    """
    config = evaluation.config
    # Other models take long to load, and only their name can be wrong.
    if kind_of(config.model) in ("endpoint", "script", "code"):
        async with open_model(config.model):
            pass
    if spec_of(config.environment.name).known_tasks is None:  # the others were checked before
        for split in evaluation.splits:
            await trials_of(evaluation, split)
    more = {"splits": list(evaluation.splits), "seeds": list(evaluation.seeds)}
    return _create(config, evaluation.command, more)


def begin_training(training: TrainingRun) -> TrainingRun:
    """Make the run's directory. Raises ``ConfigError`` if the model cannot be trained."""
    config = training.config
    if kind_of(config.model) not in IN_PROCESS:
        raise ConfigError(
            f"[model] name: '{config.model.name}' cannot be trained; its weights must be in this "
            "process: base, or the folder of a model"
        )
    directory = _create(config, "train", {"critic": training.critic})
    return TrainingRun(config, training.critic, directory)


def _create(config: Config, command: str, more: Mapping[str, object]) -> RunDirectory:
    document = {"made_by": "swarm-ui", "command": command, **more, **plain(config)}
    name = f"{command}-{config.environment.name.partition(':')[0]}"
    return RunDirectory.create(
        Path(config.run.out) if config.run.out else None, name=name, config=document
    )


async def trials_of(evaluation: EvaluationRun, split: str, arm: Arm | None = None) -> list[Trial]:
    """The episodes of a split, for every seed."""
    async with open_environment(evaluation.section(split, evaluation.seeds[0])) as environment:
        return await _trials(evaluation, split, environment, arm or Arm(name="", label=""))


async def _trials(
    evaluation: EvaluationRun, split: str, environment: OpenEnvironment, arm: Arm
) -> list[Trial]:
    spec, found = spec_of(evaluation.config.environment.name), []
    for seed in evaluation.seeds:
        name = split or "episodes"
        name += f"-seed{seed}" if len(evaluation.seeds) > 1 else ""
        jobs = await spec.jobs(evaluation.section(split, seed), environment)
        found.append(Trial(split, arm, tuple(jobs), seed=seed, name=name))
    return found


async def evaluate(
    evaluation: EvaluationRun, run: RunDirectory, model: Any, display: ProgressDisplay
) -> Results:
    """Play the remaining episodes of a run and save its results.

    Args:
        evaluation: what to play.
        run: where it is saved.
        model: an in-process model that is already loaded; ``None``: the model is opened here.
        display: shows a bar for each split and seed.
    """
    config = evaluation.config
    results = Results(labels=(spec_of(config.environment.name).label,))
    evaluator = Evaluator(run, results, display)
    async with open_model(config.model, model) as answering:
        adapters = adapter_names(config.model, config.team.agents)
        arm = arm_of(config.team, adapters, model=answering.name)
        policy = arm.policy(answering)
        for split in evaluation.splits:
            section = evaluation.section(split, evaluation.seeds[0])
            async with open_environment(section) as environment:
                most = environment.max_concurrency or config.run.concurrency
                for trial in await _trials(evaluation, split, environment, arm):
                    await evaluator.play(
                        trial,
                        policy,
                        environment.make,
                        concurrency=min(config.run.concurrency, most),
                        max_steps=config.environment.max_steps,
                        score=environment.score,
                    )
    run.set_status({"stage": "played"})
    return results


def resume_evaluation(
    path: Path, command: str, overrides: Draft, given: Sequence[str] = ()
) -> tuple[EvaluationRun, RunDirectory]:
    """Read the settings of an interrupted run.

    Args:
        path: its folder.
        command: the command that started it.
        overrides, given: see :func:`amend`.

    Raises:
        ConfigError: another command started it, or a setting must not change.
    """
    run = RunDirectory.open_existing(path)
    document = run.config()
    if (document.get("made_by"), document.get("command")) != ("swarm-ui", command):
        raise ConfigError(f"'{path}' is not a run of: swarm-ui {command}")
    config = amend(configuration_of(path), overrides, given)
    try:
        splits = msgspec.convert(document.get("splits", []), tuple[str, ...])
        seeds = msgspec.convert(document.get("seeds", []), tuple[int, ...])
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error
    return EvaluationRun(config, splits, seeds, command), run


def resume_training(path: Path, overrides: Draft, given: Sequence[str] = ()) -> TrainingRun:
    """Read the settings of an interrupted training run.

    Raises:
        ConfigError: it is not a training run, or a setting must not change; see :func:`amend`.
    """
    run = RunDirectory.open_existing(path)
    document = run.config()
    if document.get("command") != "train":
        raise ConfigError(f"'{path}' is not a run of: swarm-ui train")
    config = amend(configuration_of(path), overrides, given)
    return TrainingRun(config, bool(document.get("critic")), run)


def amend(config: Config, overrides: Draft, given: Sequence[str] = ()) -> Config:
    """The settings of a resumed run, with permitted changes.

    Args:
        config: the original configuration.
        overrides: settings given with ``--resume``, not in a file.
        given: other given options, which are not allowed.

    Raises:
        ConfigError: a setting affects the results, or is wrong.
    """
    fixed = [place for path, place in overrides.places.items() if path not in _FREE]
    for place in dict.fromkeys([*given, *fixed]):
        overrides.mistakes.append(f"{place}: cannot be changed in a run that has begun")
    values: dict[str, Any] = dict(plain(config))
    for section, name in _FREE & overrides.places.keys():
        values[section][name] = overrides.values[section][name]
    return checked(Draft(values, overrides.places, overrides.mistakes))


def configuration_of(path: Path) -> Config:
    """The settings of a run of ``run``, ``eval`` or ``train``. Raises ``ConfigError``."""
    document = dict(RunDirectory.open_existing(path).config())
    if document.pop("made_by", None) != "swarm-ui":
        raise ConfigError(f"'{path}' is not a run of the command swarm-ui; give --config FILE")
    for name in ("command", "splits", "seeds", "critic"):
        document.pop(name, None)
    try:
        return msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error


def trainer_config(config: Config) -> TeamConfig:
    """The ``[train]`` settings, which were checked before."""
    from swarm_ui.optim.config import TeamConfig

    return msgspec.convert(config.train, TeamConfig)


def critic_of(training: TrainingRun) -> CreditAssigner | None:
    """The critic of a training run; ``None``: credit by outcome."""
    environment = training.config.environment
    make_critic = spec_of(environment.name).critic
    return make_critic(environment.seed) if training.critic and make_critic else None


async def train_run(
    training: TrainingRun, model: Any, display: ProgressDisplay, warn: Callable[[str], None]
) -> Sequence[IterationMetrics]:
    """Start or continue training; returns the metrics of all iterations. Closes the model."""
    from swarm_ui.experiment.training import TrainingEnvironment, train

    config, settings, run = training.config, trainer_config(training.config), training.directory
    assert run is not None
    spec, section = spec_of(config.environment.name), config.environment
    try:
        async with open_environment(section) as environment:
            tasks = await spec.task_names(section, environment)

            def sample_jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
                return spec.training_jobs(section, tasks, count, rng)

            arm = arm_of(config.team, agent_names(config.team.agents))
            place = TrainingEnvironment(
                environment.make, sample_jobs, critic_of(training), settings.concurrency
            )
            with display.bar("training", settings.iterations) as bar:
                result = await train(run, model, arm.graph(model), place, settings, bar, warn=warn)
        run.set_status({"stage": "trained"})
        return result.history
    finally:
        await model.close()


def evaluation_command(training: TrainingRun) -> str:
    """The command that evaluates the trained team."""
    config, team, run = training.config, training.config.team, training.directory
    assert run is not None
    words = ["swarm-ui", "eval", config.environment.name]
    if config.environment.data:
        words += ["--data", config.environment.data]
    if config.model.name != "base":
        words += ["--model", config.model.name]
    words += ["--adapters", str(run.adapters), "--agents", str(team.agents)]
    words += ["--rounds", str(team.rounds), "--views", team.views]
    if trainer_config(config).edges == "learned":
        words += ["--edges", str(run.path)]
    elif team.edges != "random":
        words += ["--edges", team.edges]
    if team.vote != "majority":
        words += ["--vote", team.vote]
    return shlex.join(words)
