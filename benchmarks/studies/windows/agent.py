"""The window agent: the base agent, trained further to see part of a long screen and to abstain."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from benchmarks.studies.windows.held_out import WITHHELD
from benchmarks.studies.windows.long_phone import LongPhone
from benchmarks.studies.windows.samples import (
    LabelledScreen,
    WindowMix,
    WindowStream,
    labelled_screens,
)
from demos.base_agent.stream import COLLEAGUES, Mix, Stream
from demos.base_agent.training import Progress, Stage1Config, train
from swarm_ui.environments.phone import TRAIN_SEEDS, tasks
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import PASS
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS

MEMORY = 1
"""Number of past actions in the observations of long screens."""


def long_phone() -> LongPhone:
    """The phone with long screens that all parts of the study use."""
    return LongPhone(memory=MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAgentConfig:
    """All settings of the window agent."""

    episodes: int = 40
    """Simulated episodes of each training template from which samples are drawn."""
    stage1: Stage1Config = field(
        default_factory=lambda: Stage1Config(steps=6_000, learning_rate=3e-3, questions_first=0.0)
    )
    windows: WindowMix = field(default_factory=WindowMix)
    messages: bool = True
    """Whether samples contain messages of other agents. Without them, the names of agents are not
    in the vocabulary either."""
    withheld: tuple[str, ...] = ()
    """Training templates of which no sample is made."""
    seed: int = 0

    @classmethod
    def of(cls, steps: int, seed: int = 0) -> WindowAgentConfig:
        """The defaults with this number of training steps."""
        default = cls(seed=seed)
        return replace(default, stage1=replace(default.stage1, steps=steps))

    @classmethod
    def without_edges(cls, steps: int) -> WindowAgentConfig:
        """An agent that never received a message in a window, and did not see ``WITHHELD``."""
        silent = WindowMix(densities=(0.0,), errors=(0.0,), broken=0.0)
        return replace(cls.of(steps), windows=silent, messages=False, withheld=WITHHELD)


def make_window_agent(
    config: WindowAgentConfig, folder: Path, *, report: Callable[[Progress], None] | None = None
) -> Progress:
    """Train a window agent from the shipped base agent and save it into ``folder``."""
    torch.manual_seed(config.seed)
    names = COLLEAGUES if config.messages else ()
    learner = LocalModel.load(BASE_AGENT).with_words([PASS, *names], seed=config.seed)
    others = Stream(config.seed, KNOWN_WORDS, mix_of(config))
    stream = WindowStream(config.seed, pool(config), others, config.windows)
    last = train(learner, stream, config.stage1, report=report)
    learner.save(folder)
    made = {"steps": last.steps, "tokens": last.tokens, "cpu_seconds": round(last.cpu_seconds)}
    write_atomic(folder / "made.json", json.dumps(made) + "\n")
    return last


def mix_of(config: WindowAgentConfig) -> Mix:
    """Shares of the samples that are not windows: invented screens only."""
    default = Mix(demonstrations=0.0)
    return default if config.messages else replace(default, invented_with_messages=0.0)


def pool(config: WindowAgentConfig) -> list[LabelledScreen]:
    """Labelled screens of the training templates with training parameters."""

    async def show() -> list[LabelledScreen]:
        environment, rng = long_phone(), random.Random(config.seed)
        found: list[LabelledScreen] = []
        for task in (name for name in tasks("train") if name not in config.withheld):
            for _ in range(config.episodes):
                seed = rng.choice(TRAIN_SEEDS)
                found += await labelled_screens(environment, task=task, seed=seed, rng=rng)
        return found

    return asyncio.run(show())
