"""The replies that the critics of the study learn from and are tested on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.studies.critic.sizes import PHONE_TESTS, Sizes
from swarm_ui.environment import Environment
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser
from swarm_ui.environments.miniwob.splits import TRAIN_SEEDS as WEB_TRAIN_SEEDS
from swarm_ui.environments.phone import (
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    jobs,
    tasks,
)
from swarm_ui.environments.phone.invented import InventedPhone
from swarm_ui.experiment.critics.judged_replies import (
    continued,
    judged_team,
    keep,
    temperatures,
)
from swarm_ui.experiment.environments.miniwob import (
    LINGER,
    PAGES,
    checked_browser,
    play_pages,
    test_jobs,
)
from swarm_ui.experiment.environments.phone import TEST_DRAW
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.credit.judged import (
    CollectConfig,
    JudgedFile,
    JudgedHead,
    Purpose,
    collect,
    judged_by_outcome,
)
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode


class Collection:
    """Files of judged episodes in a folder. Existing episodes are not played again."""

    def __init__(self, folder: Path, sizes: Sizes, display: ProgressDisplay) -> None:
        self._folder, self._sizes, self._display = folder, sizes, display
        self._agent = BASE_AGENT if sizes.agent is None else Path(sizes.agent)

    def path(self, name: str) -> Path:
        """The file of a source or a split."""
        return self._folder / f"{name}.jsonl"

    def training(self, source: str) -> None:
        """Training replies of a source."""
        count = self._sizes.phone if source == "phone" else self._sizes.invented
        if source == "web":
            self._web("train-web", "train", self._web_training())
        elif source == "invented":
            drawn = draw_jobs(tuple(self._invented().tasks), count, 2, seeds=TRAIN_SEEDS)
            self._graded("train-invented", "train", drawn, self._invented)
        else:
            drawn = draw_jobs(tasks("train"), count, 2, seeds=TRAIN_SEEDS)
            self._graded("train-phone", "train", drawn, PhoneEnvironment)

    def validation(self) -> None:
        """Replies on which the scores are scaled: training templates, validation parameters."""
        count = self._sizes.validation
        drawn = draw_jobs(tasks("train"), count, TEST_DRAW, seeds=VALIDATION_SEEDS)
        self._graded("validation", "validation", drawn, PhoneEnvironment)

    def test(self, split: str) -> None:
        """Test replies of a split, on screens that the agents reach without guidance."""
        if split in PHONE_TESTS:
            drawn = jobs(split, self._sizes.test, TEST_DRAW)  # type: ignore[arg-type]
            self._graded(split, "test", drawn, PhoneEnvironment)
        else:
            pages = self._pages()
            self._web(split, "test", test_jobs(pages, self._sizes.web_test_each))

    def _graded(
        self, name: str, purpose: Purpose, drawn: Sequence[Job], make: Callable[[], Environment]
    ) -> None:
        sizes, train = self._sizes, purpose == "train"
        config = CollectConfig(
            guide=sizes.guide if train else 0.0,
            stray=sizes.stray if train else 0.0,
            adversaries=sizes.adversaries,
        )
        with continued(self.path(name), self._head(name, purpose, drawn), drawn) as (file, left):
            if not left:
                return
            model = LocalModel.load(self._agent)
            episodes = collect(
                make, judged_team(model, purpose), left, split=name, config=config,
                adversary=ScriptedAdversary(), scorer=model,
            )  # fmt: skip
            with self._display.bar(name, len(left)) as bar:
                asyncio.run(keep(file, episodes, bar))

    def _web(self, name: str, purpose: Purpose, drawn: Sequence[Job]) -> None:
        with continued(self.path(name), self._head(name, purpose, drawn), drawn) as (file, left):
            if left:
                asyncio.run(self._play_pages(name, purpose, left, file))

    async def _play_pages(
        self, name: str, purpose: Purpose, left: Sequence[Job], file: JudgedFile
    ) -> None:
        model = LocalModel.load(self._agent)
        model.set_linger(LINGER)
        with self._display.bar(name, len(left)) as bar:
            done = 0

            def record(task: str, episodes: Sequence[Episode]) -> None:
                nonlocal done
                for episode in episodes:
                    found = judged_by_outcome(episode, name)
                    if found is not None:
                        file.add(found)
                done += len(episodes)
                bar.update(done)

            async with MiniWobBrowser(pages=PAGES, binary=checked_browser()) as browser:
                await play_pages(browser, judged_team(model, purpose), left, record)

    def _head(self, name: str, purpose: Purpose, drawn: Sequence[Job]) -> JudgedHead:
        sizes = self._sizes
        settings: dict[str, object] = {
            "source": name,
            "agent": sizes.agent or "base",
            "temperatures": list(temperatures(purpose)),
            "episodes": len(drawn),
        }
        if purpose == "train":
            settings |= {"guide": sizes.guide, "stray": sizes.stray, "devices": sizes.devices}
        return JudgedHead(purpose=purpose, settings=settings)

    def _invented(self) -> InventedPhone:
        return InventedPhone(devices=self._sizes.devices)

    def _pages(self) -> Sequence[str]:
        return sorted(REFERENCE_TASKS)[: self._sizes.pages]

    def _web_training(self) -> list[Job]:
        return [
            (task, random.Random(derive(2, "critic", task, k)).choice(WEB_TRAIN_SEEDS))
            for task in self._pages()
            for k in range(self._sizes.web_each)
        ]
