"""A small training run, which can be made to kill itself (SIGKILL) at a given point."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from learning_fakes import ButtonWorld, TinyModel, button_team

from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.rollout_supervisor import Guidance
from swarm_ui.optim.trainer import TeamResult, TeamTrainer
from swarm_ui.optim.training_progress import Progress
from swarm_ui.rollout import Job

CONFIG = TeamConfig(
    iterations=3, shared_iterations=1, shared_steps=20, episodes=16, edges="learned", graphs=2,
    update=UpdateConfig(method="dpo", steps=10, batch_size=8, lr=5e-2), rank=4, seed=5,
)  # fmt: skip


def sample_jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
    return [("press", rng.randrange(10_000)) for _ in range(count)]


def trainer(model: TinyModel, *, config: TeamConfig = CONFIG, **other: Any) -> TeamTrainer:
    given: dict[str, Any] = {
        "critic": ScriptedCritic(ButtonWorld, flips=0.03),
        "guidance": Guidance(adversary=ScriptedAdversary()),
        **other,
    }
    make = given.pop("make_environment", ButtonWorld)
    return TeamTrainer(model, button_team(model), make, sample_jobs, config=config, **given)


def run(model: TinyModel, folder: Path | None, *, resume: bool = False, **other: Any) -> TeamResult:
    return asyncio.run(trainer(model, folder=folder, **other).run(resume=resume))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killer(phase: str, iteration: int) -> Callable[[Progress], None]:
    def report(progress: Progress) -> None:
        if progress.phase == phase and progress.iteration == iteration and progress.done > 0:
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
    dying_there = Callbacks(on_progress=killer(phase, iteration))
    run(TinyModel(), folder, resume=True, callbacks=dying_there, config=config)
