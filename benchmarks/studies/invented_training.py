"""Does stage 2 gain in new apps if half of its training is on many invented devices?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.arms import (
    TEST_DRAW,
    Evaluate,
    Jobs,
    MoreStage1,
    Roles,
    Train,
    phone_tests,
    untrained_vote,
)
from benchmarks.cell import Cell
from benchmarks.study import Arm, Study
from benchmarks.support.critics import NoisyCritic
from demos.base_agent.recipes import pool, solver_steps
from demos.base_agent.stream import Mix, Stream
from demos.base_agent.training import Stage1Config, train
from swarm_ui import CollabGraph
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, tasks
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    simple_tasks,
)
from swarm_ui.environments.phone.invented.environment import templates
from swarm_ui.node import derive
from swarm_ui.nodes import BASE_AGENT, GENERAL_AGENT, LocalModel
from swarm_ui.optim import ScriptedAdversary, ScriptedCritic, ScriptedTeacher
from swarm_ui.optim.trainer import SampleJobs
from swarm_ui.rollout import Job, spread_jobs
from swarm_ui.stats import Outcome

BASE, GENERAL = "four untrained agents", "four general agents (of this package), no stage 2"


DEVICES_APART = 10_000
"""Devices of seed ``s`` begin at this number times ``s``: every seed has devices of its own."""
EPISODES, TAUGHT_EPISODES = 64, 256
"""Training episodes of each of the 4 iterations; half of them are on devices, if there are any."""
_MIX = Mix(questions=0.0, pages=0.31, devices=0.09, demonstrations=0.6)
"""More stage 1 has as many samples on invented screens as stage 2 rehearses."""
make = partial(InventedPhone, devices=1, wordings="few")


def device_tasks(first: int, count: int) -> tuple[str, ...]:
    """The tasks of devices from number ``first`` on with one goal in one app."""
    return simple_tasks(first, count, "few")


def training_jobs(devices: int, seed: int) -> SampleJobs:
    """Episodes of the phone, and for half of them of this seed's devices."""
    names = device_tasks(DEVICES_APART * seed, devices) if devices else ()

    def draw(count: int, /, *, seed: int) -> list[Job]:
        rng, own = random.Random(seed), count // 2 if names else 0
        drawn = spread_jobs(tasks("train"), count - own, rng.getrandbits(32), TRAIN_SEEDS)
        if own:
            drawn += spread_jobs(names, own, rng.getrandbits(32), TRAIN_SEEDS)
            rng.shuffle(drawn)
        return drawn

    return draw


def tests(blind: int | None = None) -> Jobs:
    """Test episodes; ``blind``: number of the first device of the study's blind set."""
    seen = device_tasks(UNSEEN, 8)
    found = {
        **phone_tests(parameters=38, templates=39, apps=135),
        "new invented devices": spread_jobs(seen, 40, TEST_DRAW, TEST_SEEDS),
    }
    if blind is not None:
        names = device_tasks(blind, BLIND_DEVICES)
        found["blind set"] = spread_jobs(names, 90, TEST_DRAW, TEST_SEEDS)
    return found


def roles(seed: int, team: CollabGraph, *, outcome: bool = False, teacher: bool = False) -> Roles:
    """The scripted critic, which also judges; ``outcome``: it gives no credit."""
    critic = NoisyCritic(ScriptedCritic(make), flip=0.03, seed=derive(seed, "critic"))
    shown = ScriptedTeacher(make) if teacher else None
    return Roles(None if outcome else critic, critic, ScriptedAdversary(), shown)


def more_stage1(
    seed: int, steps: int, *, devices: int, episodes: int, agent: Path = BASE_AGENT,
    rate: float = 1e-3,
) -> tuple[LocalModel, dict[str, float]]:  # fmt: skip
    """The agent after these steps on the solver's way through as many episodes as stage 2 has."""
    model, rng = LocalModel.load(agent), random.Random(derive(seed, "demonstrations"))
    drawn = [
        job
        for group in (tasks("train"), device_tasks(DEVICES_APART * seed, devices))
        for job in spread_jobs(group, 2 * episodes, rng.getrandbits(32), TRAIN_SEEDS)
    ]
    shown = [*pool(), *asyncio.run(solver_steps(make(), drawn, rng))]
    config = Stage1Config(steps=steps, learning_rate=rate, questions_first=0.0, seed=1000 + seed)
    done = train(model, Stream(derive(seed, "more stage 1"), _MIX, shown), config)
    return model, {"cpu_s": done.cpu_seconds, "steps": done.steps}


def more(study: str, of: str, tests: Callable[[], Jobs], **given: Any) -> MoreStage1:
    """More stage 1 for the time of another arm; ``given``: options of :func:`more_stage1`."""
    return MoreStage1(
        study=study, of=of, train=partial(more_stage1, **given), tests=tests,
        policies={"": untrained_vote}, make=make,
    )  # fmt: skip


def untrained(path: Path, blind: int) -> Evaluate:
    """Four agents of this package that vote."""
    return Evaluate(
        policy=untrained_vote, tests=partial(tests, blind),
        model=partial(LocalModel.load, path), make=make,
    )  # fmt: skip


def stage2(devices: int, *, agent: Path = BASE_AGENT, **changes: Any) -> Train:
    """Stage 2 with these invented devices; settings are those chosen in the study ``learning``."""
    given = {
        "team.edges": "none", "team.temperature": 1.1, "train.edges": "fixed",
        "train.iterations": 4, "train.shared_iterations": 4, "train.episodes": EPISODES,
        "train.update.steps": 50, "train.update.lr": 3e-3, **changes.pop("set", {}),
    }  # fmt: skip
    return Train(
        tests=changes.pop("tests", tests), set=given, roles=changes.pop("roles", roles),
        agent=agent, make=make, jobs=partial(training_jobs, devices), rehearsal=0.4, **changes,
    )  # fmt: skip


def arms(name: str, start: str, agent: Path, blind: int) -> dict[str, Arm]:
    """The arms that the study of the general agent shares with the first one."""
    every = partial(tests, blind)
    return {
        start: untrained(agent, blind),
        "stage 2, 0 invented devices": stage2(0, agent=agent, tests=every),
        "stage 2, 32 invented devices": stage2(32, agent=agent, tests=every),
        "more stage 1, 32 invented devices": more(
            name, "stage 2, 32 invented devices", every, devices=32, episodes=EPISODES, agent=agent
        ),
    }  # fmt: skip


def by_app(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The blind set again, clustered by app instead of by template."""
    for cell in cells:
        if "blind set" in cell.outcomes:
            outcomes = [_of_app(o) for o in cell.outcomes["blind set"]]
            yield msgspec.structs.replace(
                cell, outcomes={"blind set, clustered by app": outcomes}, work={}
            )


def _of_app(outcome: Outcome) -> Outcome:
    number = int(outcome.template.split("-")[1])
    (app,) = templates(number, "few")[outcome.template].apps
    return msgspec.structs.replace(outcome, template=f"{number} {app}")


def study(
    played_by: Mapping[str, Arm], main: str, start: str, controls: Sequence[str],
    others: Sequence[str] = (), shown: Sequence[str] = (),
) -> Study:  # fmt: skip
    """A study of a main arm: named differences to the untrained start and to the controls, and
    exploratory ones of the other arms that were trained. ``shown``: rows of the page."""
    trained = (*controls, *others)
    general = [(GENERAL, BASE), (GENERAL, controls[0])] if start == BASE else []
    return Study(
        arms=played_by,
        trial=(start, main, controls[0]),
        named=[(main, other) for other in (start, *controls)],
        named_on=("new apps",),
        explored=[
            *((arm, start) for arm in trained), *((main, arm) for arm in others), *general,
        ],
        picture=bool(shown),
        derived=by_app,
        shown=shown,
        shown_on=("new parameters", "new apps", "blind set"),
        note="The phone is simulated, critic and teacher are scripted. The blind set was played "
        "once, so that no arm or seed can be added.",
    )  # fmt: skip


STUDY = study(
    {
        **arms("invented_training", BASE, BASE_AGENT, BLIND),
        **{f"stage 2, {count} invented devices": stage2(count) for count in (8, 16, 64)},
        "stage 2, 32 invented devices, credit by outcome": stage2(
            32, roles=partial(roles, outcome=True)
        ),
        GENERAL: untrained(GENERAL_AGENT, BLIND),
    },
    "stage 2, 32 invented devices",
    BASE,
    ("more stage 1, 32 invented devices", "stage 2, 0 invented devices"),
    (
        "stage 2, 8 invented devices", "stage 2, 16 invented devices",
        "stage 2, 64 invented devices", "stage 2, 32 invented devices, credit by outcome",
    ),
)  # fmt: skip
