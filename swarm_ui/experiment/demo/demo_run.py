"""One run of the demo: set up or resumed, trained, evaluated and reported."""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.budget import Budget
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.demo.demo_report import sort_arms, write_demo_report
from swarm_ui.experiment.demo.options import Request
from swarm_ui.experiment.environments import miniwob, phone
from swarm_ui.experiment.environments.androidworld import device_jobs
from swarm_ui.experiment.evaluation import Evaluator, Trial
from swarm_ui.experiment.long_lived import long_lived
from swarm_ui.experiment.model_settings import Language, kind_of
from swarm_ui.experiment.models import (
    adapter_names,
    check_adapters,
    silence_transformers,
)
from swarm_ui.experiment.progress import ProgressDisplay, ProgressFile, counting
from swarm_ui.experiment.settings import Settings, plain, restored
from swarm_ui.experiment.split_facts.need_of_a_team import NeedRow
from swarm_ui.experiment.teams import agent_names
from swarm_ui.experiment.workers import import_ahead
from swarm_ui.nodes.models.openai.options import ChatOptions
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED, is_hub_name, model_folder
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS
from swarm_ui.nodes.models.tiny_agent.shipped_agents import agent_folder as named_folder
from swarm_ui.report.results import Cost, Results
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.experiment.training.stage2 import TrainedTeam, TrainingEnvironment
    from swarm_ui.nodes.models.openai.model import OpenAIModel
    from swarm_ui.optim.update import Draw


@dataclasses.dataclass(frozen=True, slots=True)
class DemoRun:
    """A run that was created or resumed."""

    settings: Settings
    directory: RunDirectory
    display: ProgressDisplay
    results: Results
    rehearsal: Callable[[Any], Draw] | None = None
    """Draws the examples that a model rehearses in stage 2, such as lessons of its stage 1."""

    @property
    def resume(self) -> str:
        """The options that continue the run."""
        trust = ["--trust"] if self.settings.given_model else []
        return shlex.join(["--resume", str(self.directory.path), *trust])

    @property
    def evaluator(self) -> Evaluator:
        """Plays policies, and saves their results in the run."""
        return Evaluator(self.directory, self.results, self.display)

    @property
    def agent(self) -> Path:
        """Folder of the base agent."""
        return agent_folder(self.settings)

    def describe(self, labels: Sequence[str], splits: dict[str, str]) -> None:
        """Record which parts are simulated or scripted, and what is held out in each split."""
        self.results.labels, self.results.splits = tuple(labels), {**splits}

    async def train(self, model: Any, environment: TrainingEnvironment) -> TrainedTeam:
        """Stage 2: train the team and record the cost."""
        from swarm_ui.experiment.training.stage2 import rollout_cost, train_team

        settings, run = self.settings, self.directory
        if settings.iterations:
            for name, fact in self.training_facts(environment.concurrency).items():
                self.display.say(f"{name}: {fact}")
        label = f"stage 2 ({settings.method}, {settings.edges} edges)"
        with self.display.bar(label, settings.iterations) as bar:
            if self.rehearsal is not None:
                environment = environment._replace(rehearse=self.rehearsal(model))
            trained = await train_team(settings, run, model, environment, bar)
        self.results.rollouts = rollout_cost(run, trained.history)
        self.results.training_cpu_seconds = sum(m["cpu_seconds"] for m in trained.history)
        run.set_status({"stage": "trained"})
        return trained

    def training_facts(self, concurrency: int) -> dict[str, str]:
        """The update and its memory, as ``swarm-ui train --dry-run`` prints them."""
        from swarm_ui.experiment.training.stage2 import team_config, update_facts

        facts = update_facts(team_config(self.settings, concurrency))
        return {**facts, "adapters": ", ".join(agent_names(self.settings.agents))}

    async def play_on_pages(self, model: Any, trials: Sequence[Trial], binary: Path) -> None:
        """Play the remaining episodes of some trials on real pages, in this process."""
        trials = self.evaluator.left(trials)
        if not trials:
            return
        model.set_linger(miniwob.LINGER)
        async with MiniWobBrowser(pages=miniwob.PAGES, binary=binary) as browser:
            for trial in trials:
                label = f"web pages: {trial.arm.label}"
                with self.display.bar(label, len(trial.jobs), together=miniwob.PAGES) as bar:
                    before, began = Cost.of_model(model), time.perf_counter()
                    episodes = await miniwob.play_pages(
                        browser, trial.arm.policy(model), trial.jobs, counting(bar)
                    )
                seconds = time.perf_counter() - began
                cost = Cost.of_model(model, before, episodes, seconds)
                self.evaluator.record(trial, episodes, cost)
        model.set_linger(0.0)

    def finish(self, splits: Sequence[str] = (), need: Sequence[NeedRow] = ()) -> Path:
        """Print the tables and write the report; returns its path.

        Args:
            splits: the order of the first table.
            need: the rows of the second table, about where a team is needed; empty: none.
        """
        if splits:
            sort_arms(self.results, splits)
            self.directory.set_status({"stage": "evaluated"})
        path = write_demo_report(self.directory, self.results, self.display, need)
        self.directory.set_status({"stage": "done"})
        return path


def open_run(request: Request, *, rehearsal: Callable[[Any], Draw] | None = None) -> DemoRun:
    """Check the requirements of the run, then create its directory or resume it.

    ``rehearsal``: see :class:`DemoRun`.

    Raises:
        ConfigError: ``--resume`` names no run of this script, or something is missing.
    """
    settings, directory = request.settings, None
    if request.resume is not None:
        directory = RunDirectory.open_existing(request.resume)
        settings = restored(directory.config(), str(request.resume))
        if not request.trust:
            _expect_harmless(settings, request.resume)
    out = request.out
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(
            f"the run directory '{out}' exists and is not empty; choose another, or resume that "
            f"run: --resume {out}"
        )
    check_needs(settings)
    if directory is None:
        directory = RunDirectory.create(request.out, name=settings.name, config=plain(settings))
    display = ProgressDisplay()
    display.listener = ProgressFile(directory.path, display.say)
    return DemoRun(settings, directory, display, Results.load(directory.path), rehearsal)


def _expect_harmless(settings: Settings, folder: Path) -> None:
    """Raise ``ConfigError`` if the settings of a folder open connections."""
    would = ""
    if settings.over_endpoint:
        would = f"connect to {settings.base_url} with the key in OPENAI_API_KEY"
    elif settings.model and is_hub_name(settings.model):
        would = f"download '{settings.model}' from the Hugging Face Hub"
    if would:
        raise ConfigError(
            f"the settings in '{folder}' would {would}; give --trust if you know who wrote this "
            "folder"
        )


def check_needs(settings: Settings) -> None:
    """Raise ``ConfigError`` or ``ModelError`` if something that the run needs is missing."""
    if settings.env == "phone":
        phone.check_tasks(settings)
    elif settings.env == "miniwob":
        miniwob.checked_browser()
        miniwob.check_tasks(settings)
    else:
        device_jobs(settings, AndroidWorldEnvironment().tasks)
    if settings.over_endpoint:
        asyncio.run(_check_endpoint(settings))
    elif settings.given_model:
        check_own_model(settings)
    else:
        check_learning(settings)


def agent_folder(settings: Settings) -> Path:
    """The folder of the agent that the settings name, by default of the base agent."""
    return named_folder("base" if settings.agent is None else settings.agent)


def check_learning(settings: Settings) -> None:
    """Raise ``ConfigError`` if models cannot run in this process, or there is no base agent."""
    if not (agent_folder(settings) / "config.json").is_file():
        raise ConfigError(
            f"--agent: no agent in '{agent_folder(settings)}'; expected "
            f"{', '.join(SHIPPED_AGENTS)}, or a folder that python -m demos.base_agent made"
        )
    if settings.env == "phone":
        import_ahead()
    with long_lived():
        _check_extra()
        import torch

        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        torch.set_num_threads(1)
        silence_transformers()
    LocalModel.load(agent_folder(settings))


def check_own_model(settings: Settings) -> None:
    """Raise ``ConfigError`` if ``--model`` names no language model that can run here, or its
    adapters do not fit."""
    name = settings.model or ""
    here = name in PRETRAINED or is_hub_name(name) or (Path(name) / "config.json").is_file()
    if not here or (Path(name) / "words.json").is_file():
        raise ConfigError(
            f"--model: '{name}' is not a language model that runs in this process; name smollm2, a "
            "folder, or org/name on the Hugging Face Hub; a served one needs --base-url too"
        )
    _check_extra()
    model_folder(name)
    section, learned = model_section(settings), agent_names(settings.agents)
    if kind_of(section.name) != "local":
        raise ConfigError(
            f"--model: OPENAI_BASE_URL says where '{name}' is served; give --base-url too, or "
            "unset it"
        )
    if section.adapters:
        check_adapters(section, settings.agents, learned if settings.trains_model else ())


def model_section(settings: Settings) -> Language:
    """The language model of a run, as the commands name it."""
    return Language(
        name=settings.model or "",
        adapters=settings.adapters,
        prompt_format=settings.prompt_format,
    )


def start_adapters(settings: Settings) -> tuple[str | None, ...]:
    """The adapter of each agent before any training; empty: none has one."""
    if not settings.adapters:
        return ()
    if settings.trains_model:
        return tuple(agent_names(settings.agents))
    return tuple(adapter_names(model_section(settings), settings.agents))


def _check_extra() -> None:
    for module in ("torch", "transformers", "peft", "safetensors", "matplotlib"):
        try:
            __import__(module)
        except ImportError as error:
            raise MissingExtra("train", "a model in this process", module) from error


@asynccontextmanager
async def served_model(
    settings: Settings, name: str | None, budget: Budget
) -> AsyncIterator[OpenAIModel | None]:
    """The model of that name at the endpoint; ``None`` if none is named.

    ``budget``: may be shared with other models.
    """
    # The client takes a second to import, and only runs with an endpoint need it.
    from swarm_ui.nodes.models.openai.model import OpenAIModel

    options = ChatOptions(prompt_format=settings.prompt_format or "json")
    model = name and OpenAIModel(name, settings.base_url, budget=budget, options=options)
    try:
        yield model or None
    finally:
        if model:
            await model.close()


async def _check_endpoint(settings: Settings) -> None:
    """Raise ``ModelError`` if nothing answers at the endpoint, or a model is not served."""
    for name in (settings.model, settings.critic_model):
        async with served_model(settings, name, Budget()) as model:
            if model is not None:
                await model.check()
