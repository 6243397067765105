"""Runs of the command line: set up, played, trained, and resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shlex
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import (
    Config,
    Draft,
    EnvironmentSection,
    Finding,
    ModelSection,
    RaySection,
    checked,
    plain,
)
from swarm_ui.experiment.environments import ENVIRONMENTS, environment_findings, spec_of
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.evaluation import Evaluator, Trial, trace_name
from swarm_ui.experiment.live.worker_watch import WorkerWatch
from swarm_ui.experiment.models import (
    IN_PROCESS,
    kind_of,
    learned_adapters,
    model_findings,
    open_model,
)
from swarm_ui.experiment.permissions import demands, expect_trust
from swarm_ui.experiment.placement.opened import opened_placement
from swarm_ui.experiment.placement.place import place_findings
from swarm_ui.experiment.plugins.run_loggers import (
    check_loggers,
    logger_findings,
    make_loggers,
    result_scalars,
)
from swarm_ui.experiment.plugins.wrapping import check_users_wrappers
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.settings import DEFAULT_METHOD
from swarm_ui.experiment.teams import Arm, agent_names, arm_of, team_findings
from swarm_ui.experiment.training.ray_training import open_training_place, ray_training_findings
from swarm_ui.experiment.training.roles import critic_findings, open_critics
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.optim.loggers import logging_to
from swarm_ui.rollout.pool import Job
from swarm_ui.rollout.solver_grades import solver_grades
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.metrics import IterationMetrics
    from swarm_ui.optim.update.distributed.learners import Learners

TRAINING_TEAM = {"agents": 4, "rounds": 3, "temperature": 0.8, "views": "shuffle"}
"""Defaults of a team that learns."""
_GRAPHS = 4
"""Default of ``[train] graphs`` where edges are learned."""
_FREE = {
    *(("model", name) for name in ("url", "actor", "actor_name", "key_env", "device", "max_calls",
                                   "max_tokens_total", "rate_limit", "concurrency", "timeout")),
    *(("run", name) for name in ("concurrency", "fail_under", "max_masked", "report", "log", "on")),
    *(("ray", name) for name in RaySection.__struct_fields__),
    *(("critic", name) for name in ("url", "key_env")),
}  # fmt: skip
"""Settings that may change when a run is resumed: they do not affect the results."""


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of ``run``, ``eval`` or ``train``."""

    config: Config
    command: str
    splits: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    directory: RunDirectory | None = None
    """``None``: not begun."""

    @property
    def folder(self) -> RunDirectory:
        """The directory of a run that has begun."""
        assert self.directory is not None
        return self.directory

    @property
    def resume_command(self) -> str:
        """The command that continues the run."""
        trust = ["--trust"] if demands(self.config) else []
        words = ["swarm-ui", self.command, "--resume", str(self.folder.path), *trust]
        return shlex.join(words)

    def section(self, split: str, seed: int) -> EnvironmentSection:
        """The environment's settings for one split and seed."""
        return replace(self.config.environment, split=split, seed=seed)


def check_config(draft: Draft, *, train: bool = False, splits: Sequence[str] = ()) -> Config:
    """The configuration, checked before anything is written or loaded.

    Raises:
        ConfigError: all its mistakes.
    """

    def find(config: Config, valid: Collection[str]) -> Iterator[Finding]:
        if "environment" in valid:
            yield from environment_findings(config.environment, splits)
        if "model" in valid:
            agents = config.team.agents if "team" in valid else 0
            learned = learned_adapters(config) if train and agents else ()
            yield from model_findings(config.model, agents, learned)
            if train:
                yield from _unfit_to_learn(config.model)
        if train and {"critic", "environment"} <= set(valid):
            yield from critic_findings(config)
        if "model" in valid and config.model.actor and not train:
            yield ("model", "actor"), "an actor is for training; name an endpoint with --url"
        if "team" in valid:
            yield from team_findings(config.team)
            if not train:
                yield from _decided_by_task(config, draft)
        if "run" in valid:
            yield from logger_findings(config.run.log)
            yield from place_findings(config)
            if train and "model" in valid and "critic" in valid:
                yield from ray_training_findings(config)
        if "run" in valid and config.run.out:
            out = config.run.out
            if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
                problem = (
                    f"'{out}' exists and is not empty; choose another, or continue the run "
                    "with --resume"
                )
                yield ("run", "out"), problem

    return checked(draft, train=train, find=find)


def _decided_by_task(config: Config, draft: Draft) -> Iterator[Finding]:
    """The mistake of choosing a team where the task decides it."""
    name = config.environment.name
    if name not in ENVIRONMENTS or ENVIRONMENTS[name].team is None:
        return
    for setting in ("agents", "rounds", "edges", "density", "views", "vote"):
        if ("team", setting) in draft.places:
            problem = f"each task of '{name}' has its own agents, edges and rounds; leave it out"
            yield ("team", setting), problem


def _unfit_to_learn(section: ModelSection) -> Iterator[Finding]:
    """The mistake of training a model that is not in this process."""
    try:
        kind = kind_of(section)
    except ConfigError:
        return  # an unknown model is found before
    if kind not in IN_PROCESS:
        problem = f"'{section.name}' cannot be trained; its weights must be in this process: "
        yield ("model", "name"), problem + "base, or the folder of a model"


def check_training_config(draft: Draft) -> Config:
    """Check the configuration of a training run, which has its own defaults for team and method."""
    for name, value in TRAINING_TEAM.items():
        if ("team", name) not in draft.places:
            draft.put(("team", name), value, f"[team] {name}")
    learning, place = draft.values.setdefault("train", {}), draft.values.get("environment")
    if isinstance(learning, dict):
        update = learning.get("update", {})
        if isinstance(update, dict):
            draft.values["train"] = {**learning, "update": {"method": DEFAULT_METHOD, **update}}
    if isinstance(learning, dict) and learning.get("edges") == "learned":
        # One graph cannot be compared with others.
        draft.values["train"] = {"graphs": _GRAPHS, **draft.values["train"]}
    spec = ENVIRONMENTS.get(str(place.get("name"))) if isinstance(place, dict) else None
    if spec is not None and spec.trains_on is None:
        draft.found(("environment", "name"), f"'{spec.name}' has only tests to be evaluated on")
    elif isinstance(place, dict) and spec is not None and spec.trains_on:
        if place.get("split") not in (None, "", spec.trains_on):
            where = draft.places.get(("environment", "split"), "split")
            draft.mistakes.append(
                f"{where}: only '{spec.trains_on}' is trained on, the others are tests"
            )
        draft.put(("environment", "split"), spec.trains_on, "training")
    return check_config(draft, train=True)


def first_split(environment: EnvironmentSection) -> str:
    """The split that is played if none is named; empty: the environment has none."""
    spec = spec_of(environment.name)
    if environment.tasks and spec.split_of is not None:
        return spec.split_of(environment.tasks)
    return next(iter(spec.splits), "")


def open_environment(section: EnvironmentSection) -> AbstractAsyncContextManager[OpenEnvironment]:
    """Open the environment of a configuration, for ``async with``."""
    return spec_of(section.name).opened(section)


async def begin(run: Run) -> Run:
    """Create the directory of a run, after checking that its model and environment are available.

    Raises:
        ModelError: the endpoint does not answer, or does not serve the model.
        EnvironmentFault: no emulator answers.
        ConfigError: the environment cannot be made, or the model cannot be trained.
    """
    config, kind = run.config, kind_of(run.config.model)
    document: dict[str, object] = {"made_by": "swarm-ui", "command": run.command}
    if kind == "local":
        model_folder(config.model.name)  # downloads a model of the hub
    if kind == "endpoint":
        async with open_model(config.model):
            pass
    await check_code(run)
    if run.command == "train":
        if config.model.actor:
            from swarm_ui.experiment.training.actors import check_actor

            await check_actor(config.model)
    else:
        if spec_of(config.environment.name).known_tasks is None:  # the others were checked before
            for split in run.splits:
                await trials_of(run, split)
        document |= {"splits": run.splits, "seeds": run.seeds}
    directory = RunDirectory.create(
        Path(config.run.out) if config.run.out else None,
        name=f"{run.command}-{config.environment.name.partition(':')[0]}",
        config={**document, **plain(config)},
    )
    return dataclasses.replace(run, directory=directory)


async def check_code(run: Run) -> None:
    """Make the model of the user, and the environment if the user trains in it or wraps it.

    In other cases the environment is made when its episodes begin; see :func:`trials_of`.

    Raises:
        ConfigError: one cannot be made, the environment has no such task, or a logger cannot be
            imported.
        EnvironmentFault: it cannot list its tasks.
    """
    config = run.config
    check_loggers(config.run.log)
    if kind_of(config.model) == "code":
        async with open_model(config.model):
            pass
    spec = spec_of(config.environment.name)
    wraps = check_users_wrappers(config.environment.wrap)
    if wraps or (spec.by_user and run.command == "train"):
        async with open_environment(config.environment) as environment:
            if wraps:
                await (await environment.one()).close()
            if spec.by_user and run.command == "train":
                await spec.task_names(config.environment, environment)


def discard_if_unused(run: Run) -> None:
    """Delete the directory of a run that has begun, if it holds nothing but its settings."""
    if run.folder.remove_if_unused() and not run.config.run.out:
        with contextlib.suppress(OSError):  # other runs are in it
            run.folder.path.parent.rmdir()


async def trials_of(run: Run, split: str) -> list[Trial]:
    """The episodes of a split, for every seed."""
    async with open_environment(run.section(split, run.seeds[0])) as environment:
        return await _trials(run, split, environment, Arm(name="", label=""))


async def _trials(run: Run, split: str, environment: OpenEnvironment, arm: Arm) -> list[Trial]:
    spec, found = spec_of(run.config.environment.name), []
    for seed in run.seeds:
        jobs = await spec.jobs(run.section(split, seed), environment)
        name = trace_name(split, seed, run.seeds)
        found.append(Trial(split, arm, tuple(jobs), seed=seed, name=name))
    return found


async def evaluate(
    run: Run, model: Any, display: ProgressDisplay, warn: Callable[[str], None] = warnings.warn
) -> Results:
    """Play the remaining episodes of a run and save its results.

    Args:
        run: has begun.
        model: one of this process that is already loaded; ``None``: it is opened here.
        display: shows the progress.
        warn: called with one line when a logger fails, or workers of a cluster wait or are lost.
    """
    loggers = make_loggers(run.config.run.log, run.folder.path)
    with logging_to(loggers, _logged(run), warn) as log:
        results = await _evaluate(run, model, display, warn)
        log.log(result_scalars(results), 0)
    return results


async def _evaluate(
    run: Run, model: Any, display: ProgressDisplay, warn: Callable[[str], None]
) -> Results:
    config, wraps = run.config, run.config.environment.wrap
    labels = [spec_of(config.environment.name).label]
    if wraps:
        labels.append(f"environment in {', '.join(wraps)}")
    results = Results(labels=tuple(labels))
    with WorkerWatch(run.folder.path, warn) as watch:
        evaluator = Evaluator(run.folder, results, display, watch)
        await _played(run, model, evaluator, watch)
    run.folder.set_status({"stage": "played"})
    return results


async def _played(run: Run, model: Any, evaluator: Evaluator, watch: WorkerWatch) -> None:
    config = run.config
    async with opened_placement(config, model, watch) as placed:
        for split in run.splits:
            section = run.section(split, run.seeds[0])
            async with (
                open_environment(section) as environment,
                placed.rollouts(section, environment) as rollouts,
            ):
                for trial in await _trials(run, split, environment, placed.arm):
                    await evaluator.play(
                        trial,
                        placed.policy,
                        rollouts,
                        max_steps=config.environment.max_steps,
                        score=environment.score,
                        intervention=solver_grades,
                    )


def _logged(run: Run) -> dict[str, Any]:
    """The settings that loggers receive: what has no effect on the run is left out."""
    used = ("environment", "model", "team", "critic") if run.command == "train" else (
        "environment", "model", "team")  # fmt: skip
    values = plain(run.config)
    seeds = {"splits": run.splits, "seeds": run.seeds} if run.splits else {}
    return {"command": run.command, **seeds, **{name: values[name] for name in used}}


def resume(
    path: Path,
    command: str,
    overrides: Draft,
    given: Sequence[str] = (),
    *,
    trusted: bool = False,
) -> Run:
    """Read the settings of an interrupted run, with permitted changes.

    Args:
        path: its folder.
        command: the command that started it.
        overrides: settings given with ``--resume``, not in a file.
        given: other given options, which are not allowed.
        trusted: the folder may import code and open connections; see :func:`expect_trust`.

    Raises:
        ConfigError: another command started it, or a setting is wrong or affects the results.
    """
    directory = RunDirectory.open_existing(path)
    document = directory.config()
    if (document.get("made_by"), document.get("command")) != ("swarm-ui", command):
        raise ConfigError(f"'{path}' is not a run of: swarm-ui {command}")
    fixed = [place for name, place in overrides.places.items() if name[:2] not in _FREE]
    for place in dict.fromkeys([*given, *fixed]):
        overrides.mistakes.append(f"{place}: cannot be changed in a run that has begun")
    values = plain(configuration_of(path))
    for section, name in _FREE & {name[:2] for name in overrides.places}:
        values[section][name] = overrides.values[section][name]
    config = checked(Draft(values, overrides.places, overrides.mistakes))
    expect_trust(path, config, overrides.places, trusted=trusted)
    try:
        splits = msgspec.convert(document.get("splits", []), tuple[str, ...])
        seeds = msgspec.convert(document.get("seeds", []), tuple[int, ...])
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error
    return Run(config, command, splits, seeds, directory)


def configuration_of(path: Path) -> Config:
    """The settings of a run of ``run``, ``eval`` or ``train``. Raises ``ConfigError``."""
    document = dict(RunDirectory.open_existing(path).config())
    if document.pop("made_by", None) != "swarm-ui":
        raise ConfigError(f"'{path}' is not a run of the command swarm-ui; give --config FILE")
    for name in ("command", "splits", "seeds"):
        document.pop(name, None)
    if isinstance(document.get("critic"), bool):  # as versions without [critic] wrote it
        document["critic"] = {"kind": "" if document["critic"] else "outcome"}
    try:
        return msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error


def trainer_config(config: Config) -> TeamConfig:
    """The ``[train]`` settings, which were checked before."""
    from swarm_ui.optim.config import TeamConfig

    return msgspec.convert(config.train, TeamConfig)


async def train_run(
    run: Run,
    model: Any,
    display: ProgressDisplay,
    warn: Callable[[str], None],
    learners: Learners | None = None,
) -> Sequence[IterationMetrics]:
    """Start or continue training; returns the metrics of all iterations. Closes the model.

    ``learners``: processes that share the updates of the adapters; ``None``: this one alone.
    """
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment, train
    from swarm_ui.optim.callbacks import Callbacks

    config, settings, section = run.config, trainer_config(run.config), run.config.environment
    spec = spec_of(section.name)
    try:
        loggers = make_loggers(config.run.log, run.folder.path)
        callbacks = Callbacks(on_warning=warn, loggers=loggers, logged_config=_logged(run))
        async with (
            open_environment(section) as environment,
            open_training_place(config, model, run.folder.path, environment, warn) as playing,
        ):
            tasks = await spec.task_names(section, environment)

            def sample_jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
                return spec.training_jobs(section, tasks, count, rng)

            graph = arm_of(config.team, agent_names(config.team.agents)).graph(playing.acting)
            # An emulator plays one episode at a time, whatever the settings say.
            most = environment.max_concurrency or settings.concurrency
            settings = dataclasses.replace(settings, concurrency=min(settings.concurrency, most))
            async with open_critics(config, playing.judging, playing.in_workers) as critics:
                place = TrainingEnvironment(
                    playing.environments, sample_jobs, critics.critic, settings.concurrency,
                    critics.judge, critics.adversary,
                )  # fmt: skip
                with display.bar("training", settings.iterations) as bar:
                    result = await train(
                        run.folder, model, graph, place, settings, bar, callbacks=callbacks,
                        acting=playing.acting, learners=learners,
                    )  # fmt: skip
        run.folder.set_status({"stage": "trained"})
        return result.history
    finally:
        await model.close()


def evaluation_command(run: Run) -> str:
    """The command that evaluates the trained team."""
    config, team = run.config, run.config.team
    words = ["swarm-ui", "eval", config.environment.name]
    if config.environment.data:
        words += ["--data", config.environment.data]
    for wrap in config.environment.wrap:
        words += ["--wrap", wrap]
    if config.model.name != "base":
        words += ["--model", config.model.name]
    words += ["--adapters", str(run.folder.adapters), "--agents", str(team.agents)]
    words += ["--rounds", str(team.rounds), "--views", team.views]
    if trainer_config(config).edges == "learned":
        words += ["--edges", str(run.folder.path)]
    elif team.edges != "random":
        words += ["--edges", team.edges]
    if team.vote != "majority":
        words += ["--vote", team.vote]
    return shlex.join(words)
