"""A team learns on the phone, then on real web pages, then on recorded web tasks.

Cells run one at a time, each in a separate folder; finished parts are not repeated. After each
stage, the same test episodes are played in all three environments.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.continuation.cells import Cell
from benchmarks.studies.continuation.course import Course
from benchmarks.studies.continuation.lessons import Lessons
from benchmarks.studies.continuation.play import Playing, play_all
from benchmarks.studies.continuation.tasks import CANDIDATES, drawn, kept
from benchmarks.studies.continuation.traces import make_traces
from benchmarks.studies.continuation.worlds import Pages
from benchmarks.studies.struct_files import read_struct
from benchmarks.support.timing_record import children_seconds
from demos.base_agent.stream import Rehearsal, rehearsal_for
from swarm_ui.environments.mind2web import Mind2Web
from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.environments.miniwob.splits import TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.environments.miniwob import LINGER, checked_browser, play_pages
from swarm_ui.experiment.progress import Bar, ProgressDisplay
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import Arm, agent_names, rollout_arm
from swarm_ui.experiment.training.stage2 import TrainingEnvironment, team_config, train_team
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.preferences import PairConfig
from swarm_ui.optim.trainer import SampleJobs, TeamTrainer
from swarm_ui.optim.update import rehearsal
from swarm_ui.report.results import Results
from swarm_ui.rollout import Job
from swarm_ui.stats import outcomes
from swarm_ui.storage.run_directory import RunDirectory

_LOOK = Arm(name="look", label="base, sampled", temperature=0.8)


class Continuation:
    """The cells of one folder."""

    def __init__(self, folder: Path, agent: Path, course: Course, display: ProgressDisplay) -> None:
        """
        Args:
            agent: folder of the base agent.

        Raises:
            ConfigError: there is no browser, or the folder was created with other settings.
        """
        self.folder, self.course, self.display = folder, course, display
        self._agent, self._binary = agent, checked_browser()
        self._run(folder, "continuation")
        self._data = make_traces(
            folder / "traces", train=course.traces_train, test=course.traces_test
        )
        self.trained = self._looked()

    # -- cells ----------------------------------------------------------------------------------

    def base(self) -> None:
        """The base agent before stage 2."""
        self._test(self._cell("base", 0), self._agent, None)

    def phone(self, seed: int) -> None:
        """Stage 2 on the phone as in the demo, or a team that another study trained."""
        cell = self._cell("phone", seed)
        if not cell.done and self.course.teams is not None:
            trained = Path(self.course.teams) / f"rft-{seed}"
            if not any((trained / "adapters").glob("agent_*")):
                raise ConfigError(f"no team of the phone in '{trained}'; train it there first")
            shutil.copytree(trained / "adapters", cell.adapters, dirs_exist_ok=True)
            cell.finish(Results.load(trained).training_cpu_seconds, 0.0)
        elif not cell.done:
            cell.finish(self._on_phone(cell, self._settings(seed)), 0.0)
        self._test(cell, self._agent, cell.adapters)

    def web(self, seed: int, *, rehearse: bool = False) -> None:
        """Stage 2 on real pages, starting from the phone's team; credit by outcome."""
        cell = self._cell("web_rehearsed" if rehearse else "web", seed)
        if not cell.done:
            asyncio.run(self._on_pages(cell, self._begun(seed), rehearse))
        self._test(cell, self._agent, cell.adapters)

    def traces(self, seed: int, *, rehearse: bool = False) -> None:
        """Stage 2 on recorded tasks, starting from the web team; the recording is the critic."""
        cell = self._cell("traces_rehearsed" if rehearse else "traces", seed)
        before = self._cell("web_rehearsed" if rehearse else "web", seed)
        if not cell.done:
            asyncio.run(self._on_traces(cell, before, rehearse))
        self._test(cell, self._agent, cell.adapters)

    def control(self, seed: int) -> None:
        """The synthetic-only control: the phone's team learns from the sample stream of stage 1,
        with the same updates and for the CPU time of the web stage, without real pages."""
        cell, before = self._cell("control", seed), self._begun(seed)
        if not cell.done:
            model = self._team(before)
            lessons = Lessons(self._settings(seed), self.course.steps)
            seconds = self._cell("web", seed).cpu
            config = lessons.config_for(seconds, lambda: self._team(before))
            with self.display.bar(f"{cell.folder.name}: training", config.iterations) as bar:
                spent = lessons.teach(model, config, bar.update)
            model.save_adapters(cell.adapters)
            cell.finish(spent, 0.0)
        self._test(cell, self._agent, cell.adapters)

    # -- parts ----------------------------------------------------------------------------------

    def _team(self, cell: Cell) -> LocalModel:
        """The agents of a later stage, which trains one adapter for all: each starts with a copy of
        the first agent's."""
        model = LocalModel.load(self._agent)
        names = agent_names(self.course.team.agents)
        for name in names:
            model.load_adapter(cell.adapters / names[0], name)
        return model

    def _settings(self, seed: int) -> Settings:
        return dataclasses.replace(self.course.team, method="rft", seed=seed)

    def _cell(self, stage: str, seed: int) -> Cell:
        cell = Cell.load(self.folder / (f"{stage}-{seed}" if stage != "base" else stage))
        if stage not in ("base", "phone"):
            cell.record.phone_seed = self.course.phone_seed
        return cell

    def _begun(self, seed: int) -> Cell:
        """The phone's team that a seed starts from."""
        own = self.course.phone_seed
        return self._cell("phone", seed if own is None else own)

    def _run(self, path: Path, name: str) -> RunDirectory:
        raw = msgspec.json.encode(dataclasses.asdict(self.course))
        config = msgspec.json.decode(raw, type=dict[str, object])
        if not (path / "config.json").exists():
            return RunDirectory.create(path, name=name, config=config)
        run = RunDirectory.open_existing(path)
        if run.config() != config:
            raise ConfigError(f"'{path}' was begun with other settings; choose another folder")
        return run

    def _recordings(self, split: str) -> Mind2Web:
        return Mind2Web(self._data, split, top_k=None)  # type: ignore[arg-type]

    def _looked(self) -> tuple[str, ...]:
        """The pages to train on. The candidates are evaluated once to choose them."""
        path = self.folder / "look.json"
        if not path.exists():
            jobs = drawn("look", tuple(CANDIDATES), self.course.look, VALIDATION_SEEDS)
            look: dict[str, list[float | None]] = {}

            async def play(bar: Bar) -> None:
                model = LocalModel.load(self._agent)
                model.set_linger(LINGER)
                async with MiniWobBrowser(pages=8, binary=self._binary) as browser:
                    episodes = await play_pages(
                        browser, _LOOK.policy(model), jobs, lambda task, done: bar.update(0.0, task)
                    )
                for outcome in outcomes(episodes):
                    look.setdefault(outcome.template, []).append(outcome.value)

            with self.display.bar("a look at the candidates", len(jobs)) as bar:
                asyncio.run(play(bar))
            write_atomic(path, msgspec.json.format(msgspec.json.encode(look)) + b"\n")
        seen = read_struct(path, dict[str, list[float | None]])
        return kept(seen) or tuple(CANDIDATES)[:1]

    def _on_phone(self, cell: Cell, settings: Settings) -> float:
        run, model = self._run(cell.folder, cell.folder.name), LocalModel.load(self._agent)
        environment = TrainingEnvironment(
            PhoneEnvironment,
            lambda count, *, seed: phone.training_jobs(settings, count, random.Random(seed)),
            phone.scripted_critic(settings),
            phone.CONCURRENCY,
            rehearse=rehearsal_for(model),
        )
        with self.display.bar(f"{cell.folder.name}: training", settings.iterations) as bar:
            trained = asyncio.run(train_team(settings, run, model, environment, bar))
        return float(sum(m["cpu_seconds"] for m in trained.history))

    async def _on_pages(self, cell: Cell, before: Cell, rehearse: bool) -> None:
        course, children = self.course, children_seconds()
        settings = self._later(cell.seed, course.web_iterations, course.web_episodes, rehearse)
        model = self._team(before)
        model.set_linger(LINGER)
        async with MiniWobBrowser(pages=course.pages, binary=self._binary) as browser:
            pages = Pages(browser.environments)
            environment = TrainingEnvironment(
                pages.environment, _spread(self.trained), None, course.pages
            )
            spent = await self._go_on(cell, model, settings, environment)
        cell.finish(spent, children_seconds() - children)

    async def _on_traces(self, cell: Cell, before: Cell, rehearse: bool) -> None:
        course, data = self.course, self._recordings("train")
        settings = self._later(
            cell.seed, course.traces_iterations, course.traces_episodes, rehearse
        )
        critic = ScriptedCritic(data.environment)
        environment = TrainingEnvironment(
            data.environment, _spread(data.tasks), critic, course.pages
        )
        cell.finish(await self._go_on(cell, self._team(before), settings, environment), 0.0)

    def _later(self, seed: int, iterations: int, episodes: int, rehearse: bool) -> Settings:
        """Settings of the stages after the phone: one adapter for all agents, and no messages."""
        return dataclasses.replace(
            self._settings(seed), edges="fixed", iterations=iterations, episodes=episodes,
            shared_iterations=iterations, shared_steps=self.course.steps,
            rehearsal=self.course.rehearsal if rehearse else 0.0,
        )  # fmt: skip

    async def _go_on(
        self, cell: Cell, model: LocalModel, settings: Settings, environment: TrainingEnvironment
    ) -> float:
        """Train in one more environment; returns CPU-seconds."""
        self._run(cell.folder, cell.folder.name)
        # Page order has a meaning, so views are not shuffled. There are no messages: on the first
        # training episodes of the pages a team with messages solved 30 %, and a team that only
        # voted solved 36 % with a third of the calls.
        arm = dataclasses.replace(rollout_arm(settings, ()), views="same", rounds=1)
        # With credit by outcome, no message of a solved episode is wrong. Steps without a wrong
        # message are thinned out with a critic, but here they are the only examples.
        pairs = PairConfig(easy_share=1.0) if environment.critic is None else PairConfig()
        with self.display.bar(f"{cell.folder.name}: training", settings.iterations) as bar:
            trainer = TeamTrainer(
                arm.graph(model),
                environment.make_environment,
                environment.sample_jobs,
                config=dataclasses.replace(
                    team_config(settings, environment.concurrency), pairs=pairs
                ),
                critic=environment.critic,
                folder=cell.folder,
            )
            trainer.rehearse = rehearsal(Rehearsal(KNOWN_WORDS), settings.rehearsal)
            trainer.warn = bar.say
            trainer.on_progress = _moving(bar)
            result = await trainer.run(resume=True)
        model.save_adapters(cell.adapters)
        return float(sum(m["cpu_seconds"] for m in result.history))

    def _test(self, cell: Cell, agent: Path, adapters: Path | None) -> None:
        playing = Playing(
            course=self.course, agent=agent, adapters=adapters, trained=self.trained,
            data=self._data, binary=self._binary,
        )  # fmt: skip
        asyncio.run(play_all(cell, playing, self.display))


def _spread(tasks: Sequence[str]) -> SampleJobs:
    """Training episodes, evenly spread over the tasks. Episodes of one task are adjacent."""

    def sample(count: int, /, *, seed: int) -> list[Job]:
        rng = random.Random(seed)
        order = rng.sample(list(tasks), len(tasks))
        return sorted((order[k % len(order)], rng.choice(TRAIN_SEEDS)) for k in range(count))

    return sample


def _moving(bar: Bar) -> Callable[[int, str, int, int], None]:
    def move(iteration: int, what: str, done: int, total: int) -> None:
        share = done / max(1, total)
        part = {"rollout": 0.5 * share, "update": 0.5 + 0.5 * share}.get(what, 1.0)
        bar.update(iteration + part, f"{what} {done}/{total}")

    return move
