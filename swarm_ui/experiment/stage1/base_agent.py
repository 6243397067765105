"""Stage 1: training of the base agent on synthetic samples and a few phone demonstrations."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, tasks, vocabulary
from swarm_ui.experiment.progress import Bar, ProgressDisplay
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.stage1.supervised import Progress, Stage1Config, train
from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
from swarm_ui.optim.stage1.synthesis.demonstrations import demonstrate
from swarm_ui.optim.stage1.synthesis.screens import ActionSample
from swarm_ui.optim.update import parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAgentConfig:
    """Settings of training a base agent. The defaults produced the shipped checkpoint."""

    width: int = 64
    layers: int = 3
    heads: int = 4
    demonstrations: int = 2
    """Demonstrated episodes of each training template: few, as on a real device."""
    processes: int = 2
    stage1: Stage1Config = field(default_factory=Stage1Config)
    mix: Mix = field(default_factory=Mix)
    seed: int = 0
    demonstrations_seed: int = 0
    """Seed for choosing the demonstrated episodes. It is separate from ``seed``, so that continuing
    stage 1 with another seed adds no new demonstrations."""


def make_base_agent(
    config: BaseAgentConfig,
    folder: Path,
    *,
    start: Path | None = None,
    report: Callable[[Progress], None] | None = None,
) -> None:
    """Train a base agent and save it into ``folder``.

    ``start``: folder of an agent to start from. ``report``: called with the first process's
    progress.
    """
    parallel.run(_train, (config, folder, start, report), processes=config.processes)


def pool(config: BaseAgentConfig) -> list[ActionSample]:
    """The demonstrated steps of the reference solver, on training templates and parameters."""

    async def show() -> list[ActionSample]:
        environment, rng = PhoneEnvironment(), random.Random(config.demonstrations_seed)
        steps: list[ActionSample] = []
        for task in tasks("train"):
            for _ in range(config.demonstrations):
                seed = rng.choice(TRAIN_SEEDS)
                steps += await demonstrate(environment, task=task, seed=seed, rng=rng)
        return steps

    return asyncio.run(show())


def _train(
    rank: int,
    work: tuple[BaseAgentConfig, Path, Path | None, Callable[[Progress], None] | None],
) -> None:
    torch.set_num_threads(1)
    config, folder, start, report = work
    if start is None:
        learner = LocalModel.untrained(
            ScreenTokenizer(vocabulary()),
            width=config.width,
            layers=config.layers,
            heads=config.heads,
            seed=config.seed,
        )
    else:
        learner = LocalModel.load(start)
    stream = Stream(config.seed * 1000 + rank, KNOWN_WORDS, config.mix, pool(config))
    settings = replace(config.stage1, seed=config.stage1.seed * 1000 + rank)
    shown = report if rank == 0 else None
    train(learner, stream, settings, report=shown, share=parallel.average_gradients)
    if rank == 0:
        learner.save(folder)


class Stage1Bar:
    """A progress bar with the loss and the time left; it can be pickled before its first call."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            self._bar = Bar(ProgressDisplay(announce=False), "stage 1", progress.steps, share=True)
        self._bar.update(progress.step, f"loss {progress.loss:.3f}")
        if progress.step == progress.steps:
            self._bar.end()
