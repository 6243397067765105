"""One run of the demo: what it needs is checked before anything is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.console import Screen
from swarm_ui.experiment.demo_options import Request
from swarm_ui.experiment.evaluation import Evaluation
from swarm_ui.experiment.quiet import hush_transformers
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.settings import Settings, plain, restored
from swarm_ui.storage.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True, slots=True)
class Session:
    """A run that has begun."""

    settings: Settings
    run: RunDirectory
    screen: Screen
    results: Results

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation(self.run, self.results, self.screen)

    @property
    def agent(self) -> Path:
        """Folder of the base agent."""
        if self.settings.from_scratch:
            return self.run.path / "agent"
        return agent_folder(self.settings)

    def reached(self, stage: str) -> None:
        """Note down where the run stands."""
        self.run.set_status({"stage": stage})

    def describe(self, labels: Sequence[str], splits: dict[str, str]) -> None:
        """What the results are about."""
        self.results.labels = tuple(labels)
        self.results.splits = {**splits}


def wanted(request: Request) -> tuple[Settings, RunDirectory | None]:
    """Settings of the run, and the run itself if it is to go on.

    Raises:
        ConfigError: ``--resume`` names no run of this script.
    """
    if request.resume is None:
        return request.settings, None
    run = RunDirectory.open_existing(request.resume)
    return restored(run.config(), str(request.resume)), run


def opened(
    request: Request, settings: Settings, run: RunDirectory | None, screen: Screen
) -> Session:
    """Take the run up, or make its directory."""
    if run is None:
        config = plain(settings)
        run = RunDirectory.create(request.out, name=settings.name, config=config)
    return Session(settings, run, screen, Results.load(run.path))


def check_out(path: Path | None) -> None:
    """Raises ``ConfigError`` early where ``RunDirectory.create`` would raise it later."""
    if path is not None and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(
            f"the run directory '{path}' exists and is not empty; choose another, or go on with "
            f"that run: --resume {path}"
        )


def agent_folder(settings: Settings) -> Path:
    if settings.agent is not None:
        return Path(settings.agent)
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT

    return BASE_AGENT


def check_learning(settings: Settings) -> None:
    """Raises ``ConfigError`` if models cannot run in this process, or there is no base agent."""
    if settings.agent is not None and not (Path(settings.agent) / "config.json").is_file():
        raise ConfigError(
            f"--agent: no agent in '{settings.agent}'; make one with demos/train_base_agent.py"
        )
    for module in ("torch", "transformers", "peft", "safetensors", "matplotlib"):
        try:
            __import__(module)
        except ImportError as error:
            raise MissingExtra("train", "a model in this process", module) from error
    import torch

    torch.set_num_threads(1)
    hush_transformers()
    if not settings.from_scratch:
        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        LocalModel.load(agent_folder(settings))
