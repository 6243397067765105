"""Episodes of a configuration, saved one by one, so that a run can be broken off and taken up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.cli import models, teams, worlds
from swarm_ui.cli.config import Config, Draft, EnvironmentSection, Finding, checked, plain
from swarm_ui.cli.output import Output
from swarm_ui.cli.results import Results, counted, episodes_of
from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.rollout.episodes import rollout_stream
from swarm_ui.rollout.policy import Policy
from swarm_ui.rollout.pool import EnvironmentPool, Job, Restarts
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import append_jsonl, repair_jsonl, write_jsonl
from swarm_ui.trace.records import Episode


@dataclass(frozen=True, slots=True)
class Plan:
    """Some episodes that belong together."""

    name: str
    split: str
    seed: int
    jobs: tuple[Job, ...]


class Stopped(Exception):
    """A run was broken off; what it had done is saved."""

    def __init__(self, run: Path, resume: str, why: BaseException | None = None) -> None:
        super().__init__(f"saved in {run}; go on with: {resume}")
        self.run, self.resume, self.why = run, resume, why


@dataclass(frozen=True, slots=True)
class Work:
    """What a command is about to play."""

    config: Config
    splits: tuple[str, ...]
    seeds: tuple[int, ...]
    command: str
    """``run`` or ``eval``: what takes it up again."""


def findings(
    config: Config, sound: Collection[str], splits: Sequence[str] = ()
) -> Iterator[Finding]:
    """What is wrong with a configuration beyond its types, found before anything is written.

    Args:
        config: whose types are right.
        sound: sections to look at.
        splits: these instead of the configuration's.
    """
    if "environment" in sound:
        yield from worlds.findings(config.environment, splits)
    if "model" in sound:
        yield from models.findings(config.model, config.team.agents if "team" in sound else 0)
    if "team" in sound:
        try:
            teams.edges_of(config.team)
        except ConfigError as error:
            yield ("team", "edges"), str(error)
    if "run" in sound and config.run.out:
        out = Path(config.run.out)
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            yield (
                ("run", "out"),
                f"'{out}' exists and is not empty; choose another, or --resume it",
            )


def begin(work: Work) -> RunDirectory:
    """Make the run's directory, once it is known that model and environment are there.

    Raises:
        ModelError: the endpoint does not answer, or does not serve the model.
        EnvironmentFault: no emulator answers.
        ConfigError: the environment cannot be made.
    """
    asyncio.run(_ready(work))
    out = work.config.run.out
    document = {
        "made_by": "swarm-ui",
        "command": work.command,
        "splits": list(work.splits),
        "seeds": list(work.seeds),
        **plain(work.config),
    }
    name = f"{work.command}-{work.config.environment.name.partition(':')[0]}"
    return RunDirectory.create(Path(out) if out else None, name=name, config=document)


async def _ready(work: Work) -> None:
    # Others take long to load, and nothing but their name can be wrong.
    if models.kind_of(work.config.model) in ("endpoint", "script", "code"):
        async with models.opened(work.config.model):
            pass
    if work.config.environment.name not in ("phone", "miniwob"):  # those were checked already
        for split in work.splits:
            async with worlds.opened(section(work, split, work.seeds[0])) as world:
                await plans_of(Work(work.config, (split,), work.seeds, work.command), world)


def section(work: Work, split: str, seed: int) -> Any:
    """The environment's settings for one plan."""
    return msgspec.structs.replace(work.config.environment, split=split, seed=seed)


async def plans_of(work: Work, world: worlds.World) -> list[Plan]:
    """The episodes of every split and seed."""
    found = []
    for split in work.splits:
        for seed in work.seeds:
            name = split or "episodes"
            name += f"-seed{seed}" if len(work.seeds) > 1 else ""
            jobs = await worlds.jobs_of(section(work, split, seed), world)
            found.append(Plan(name, split, seed, tuple(jobs)))
    return found


_FREE = {
    *(("model", name) for name in ("url", "key_env", "device", "max_calls", "max_tokens_total",
                                   "rate_limit", "concurrency", "timeout")),
    *(("run", name) for name in ("concurrency", "fail_under", "report")),
}  # fmt: skip
"""Settings that may be others when a run is taken up: they do not change what is measured."""


def amended(config: Config, overrides: Draft, given: Sequence[str] = ()) -> Config:
    """The settings of a run that goes on, with those that may be others then.

    Args:
        config: as the run was set up.
        overrides: given with ``--resume``, not in a file.
        given: more flags that were given and may not be.

    Raises:
        ConfigError: one of them decides what is measured, or is wrong.
    """
    fixed = [place for path, place in overrides.places.items() if path not in _FREE]
    for place in dict.fromkeys([*given, *fixed]):
        overrides.mistakes.append(f"{place}: cannot be changed in a run that has begun")
    values: dict[str, Any] = dict(plain(config))
    for section, name in _FREE & overrides.places.keys():
        values[section][name] = overrides.values[section][name]
    return checked(Draft(values, overrides.places, overrides.mistakes))


def taken_up(
    path: Path, command: str, overrides: Draft, given: Sequence[str] = ()
) -> tuple[Work, RunDirectory]:
    """A run that was broken off.

    Args:
        path: its folder.
        command: that it is a run of.
        overrides, given: see :func:`amended`.

    Raises:
        ConfigError: it is no run of this command, or must not be changed so.
    """
    run = RunDirectory.open_existing(path)
    document = dict(run.config())
    by = (document.pop("made_by", None), document.pop("command", None))
    if by != ("swarm-ui", command):
        raise ConfigError(f"'{path}' is not a run of: swarm-ui {command}")
    splits, seeds = document.pop("splits", []), document.pop("seeds", [])
    try:
        config = amended(msgspec.convert(document, Config), overrides, given)
        work = Work(config, msgspec.convert(splits, tuple[str, ...]),
                    msgspec.convert(seeds, tuple[int, ...]), command)  # fmt: skip
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error
    return work, run


def configured(path: Path) -> Config:
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


def finish(work: Work, run: RunDirectory, out: Output) -> Results:
    """Play what is left of a run, and save its figures.

    Raises:
        Stopped: it was interrupted, or the model's budget is used up.
    """
    resume = f"swarm-ui {work.command} --resume {run.path}"
    try:
        early = models.loaded_early(work.config.model, out)
        return asyncio.run(_finish(work, run, out, early))
    except KeyboardInterrupt as error:
        raise Stopped(run.path, resume, error) from None
    except BudgetExceeded as error:
        raise Stopped(run.path, resume, error) from error


async def _finish(work: Work, run: RunDirectory, out: Output, early: Any) -> Results:
    config, label = work.config, ""
    played = []
    async with models.opened(config.model, early) as model:
        names = models.adapter_names(config.model, config.team.agents)
        policy = teams.policy_of(config.team, model, names)
        for split in work.splits:
            async with worlds.opened(section(work, split, work.seeds[0])) as world:
                label = world.label
                part = Work(config, (split,), work.seeds, work.command)
                for plan in await plans_of(part, world):
                    await _play(plan, policy, world, config, run, out)
                    found = episodes_of(run.path, plan.name)
                    figures = counted(plan.name, plan.split, plan.seed, plan.jobs, found)
                    played.append(worlds.with_measures(figures, world, found))
                    Results(label=label, plans=tuple(played)).save(run.path)
    run.set_status({"stage": "played"})
    return Results(label=label, plans=tuple(played))


async def _play(
    plan: Plan, policy: Policy, world: worlds.World, config: Config, run: RunDirectory, out: Output
) -> None:
    """Play what is left of a plan; each episode is on disk as soon as it is over."""
    path = run.traces / f"{plan.name}.jsonl"
    left, kept = _left(plan, run, path)
    if not left:
        return
    size = min(config.run.concurrency, world.most or config.run.concurrency, len(left))
    solved, masked = sum(e.success is True for e in kept), 0
    with out.bar(plan.name, len(plan.jobs)) as bar:
        bar.update(len(kept), _note(solved, masked))
        async with (
            EnvironmentPool(world.make, size, restarts=Restarts(retries=1)) as pool,
            aclosing(
                rollout_stream(pool, policy, left, max_steps=config.environment.max_steps)
            ) as episodes,
        ):
            done = len(kept)
            async for episode in episodes:
                append_jsonl(path, [episode])
                done, solved = done + 1, solved + (episode.success is True)
                masked += episode.success is None
                bar.update(done, _note(solved, masked))


def _left(plan: Plan, run: RunDirectory, path: Path) -> tuple[list[Job], list[Episode]]:
    """The jobs that are not done; faults of an earlier attempt are taken out of the file."""
    if not path.exists():
        return list(plan.jobs), []
    repair_jsonl(path)
    found = episodes_of(run.path, plan.name)
    kept = counted_of(run, plan)
    if len(kept) < len(found):
        write_jsonl(path, kept)
    done = Counter((episode.task, episode.seed) for episode in kept)
    left = []
    for job in plan.jobs:
        if done[job]:
            done[job] -= 1
        else:
            left.append(job)
    return left, kept


def counted_of(run: RunDirectory, plan: Plan) -> list[Episode]:
    """The episodes of a plan that need not be played again."""
    return [episode for episode in episodes_of(run.path, plan.name) if episode.fault is None]


def _note(solved: int, masked: int) -> str:
    return f"{solved} solved" + (f", {masked} masked" if masked else "")


def first_split(place: EnvironmentSection) -> str:
    """The split of an environment that holds if none is named; empty: it has none."""
    known = worlds.splits_of(place)
    return known[0] if known else ""
