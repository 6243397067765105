"""A small training run, which can be made to kill itself (SIGKILL) at a given point."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from learning_fakes import ButtonWorld, Contrary, TinyModel, button_team

from swarm_ui.optim import ScriptedAdversary, TeamConfig, TeamTrainer, UpdateConfig
from swarm_ui.optim.trainer import TeamResult
from swarm_ui.rollout import Job

CONFIG = TeamConfig(
    iterations=3, shared_iterations=1, episodes=16, edges="learned", graphs=2,
    update=UpdateConfig(method="dpo", steps=10, batch_size=8, lr=5e-2), rank=4, seed=5,
)  # fmt: skip


ATTRIBUTES = ("loss", "rehearse", "on_progress", "on_episodes", "warn", "log", "max_steps")


def sample_jobs(count: int, /, *, seed: int) -> list[Job]:
    rng = random.Random(seed)
    return [("press", rng.randrange(10_000)) for _ in range(count)]


def trainer(model: TinyModel, *, config: TeamConfig = CONFIG, **other: Any) -> TeamTrainer:
    """``other``: arguments of the trainer, or its attributes."""
    given: dict[str, Any] = {
        "critic": Contrary(ButtonWorld, 0.03),
        "adversary": ScriptedAdversary(),
        **other,
    }
    attributes = {name: given.pop(name) for name in ATTRIBUTES if name in given}
    make, team = given.pop("make_environment", ButtonWorld), given.pop("team", button_team(model))
    made = TeamTrainer(team, make, sample_jobs, config=config, **given)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def run(model: TinyModel, folder: Path | None, *, resume: bool = False, **other: Any) -> TeamResult:
    return asyncio.run(trainer(model, folder=folder, **other).run(resume=resume))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killer(phase: str, iteration: int) -> Callable[[int, str, int, int], None]:
    def report(at: int, what: str, done: int, total: int) -> None:
        if what == phase and at == iteration and done > 0:
            _die()

    return report


def run_until(folder: Path, phase: str, iteration: int, config: TeamConfig = CONFIG) -> None:
    """Train in the folder until this phase of this iteration, and die there."""
    if phase == "rename":  # everything is written, the checkpoint is not yet committed
        rename = os.rename

        def dying(source: Any, target: Any) -> None:
            if str(target).endswith(f"iteration-{iteration:04d}"):
                _die()
            rename(source, target)

        os.rename = dying
    run(TinyModel(), folder, resume=True, config=config, on_progress=killer(phase, iteration))
