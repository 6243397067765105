"""An environment as an experiment names it: its settings, its episodes, and what is held out.

Each environment has a subclass of :class:`Benchmark` beside it. Its fields are the settings of the
section ``[env]``, and no others exist.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from swarm_ui.agent_view import AgentView
from swarm_ui.environments.base import SPLIT_SEEDS, known_as
from swarm_ui.errors import ConfigError
from swarm_ui.node import Node, derive
from swarm_ui.rollout import Job, MakeEnvironment, Policy, spread_jobs
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode

DEFAULT_EPISODES = 20
Count = Annotated[int, Field(ge=1, lt=2**63)]
Natural = Annotated[int, Field(ge=0, lt=2**63)]
Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]
"""Several texts; one of them may be given alone."""
Seeds = Literal["train", "validation"]
MakeAgent = Callable[[str, AgentView], Node]
"""``(name, view) -> node``: the agent of this name, which sees only this part of the screen."""
Mistake = tuple[str, str]
"""A setting, such as ``"tasks"``, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened environment, of which any number of instances can be created."""

    make: MakeEnvironment
    max_concurrency: int | None = None
    """Maximum number of concurrent episodes; ``None``: any number."""
    jobs: Callable[[Sequence[str]], list[Job]] | None = None
    """All test episodes, or those of the named tasks, if the opened data set determines them."""
    score: Callable[[Sequence[Episode]], tuple[Measure, ...]] | None = None
    """The benchmark's own measures, if it has any."""

    async def tasks(self) -> Sequence[str]:
        """The tasks that the environment itself lists."""
        async with self.one() as environment:
            if hasattr(environment, "start"):  # its tasks are known only in a separate process
                await environment.start()
            return cast(Sequence[str], environment.tasks)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Any]:
        """One environment, which is closed at the end of the block."""
        made: Any = self.make()
        environment = await made if inspect.isawaitable(made) else made
        try:
            yield environment
        finally:
            await environment.close()


class Benchmark(BaseModel):
    """The settings of an environment. A subclass adds its own, and says how to open it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    label: ClassVar[str]
    """The note below tables of its results."""
    splits: ClassVar[tuple[str, ...]] = ()
    """The splits; the first is the default, a test split. Empty if there are none."""
    trains_on: ClassVar[str | None] = ""
    """The split for training; empty: there are no splits; ``None``: all are tests."""
    resource: ClassVar[str] = ""
    """Name of the limited resource of a cluster node that each worker occupies, such as
    ``"emulator"``; empty: none."""
    seeds: ClassVar[Mapping[Any, range]] = SPLIT_SEEDS
    """The ranges of seeds: ``train``, ``validation`` and ``test``."""
    evenly: ClassVar[bool] = False
    """Whether random episodes are spread evenly over the tasks."""

    name: str = ""
    tasks: Texts = ()
    """Only these tasks; empty: all of the split."""
    held_out: Texts = ()
    """Tasks that training leaves out, for a test of one's own."""
    max_steps: Count | None = None
    """Maximum number of steps of an episode; ``None``: the environment's."""
    wrap: Texts = ()
    """Wrappers, the innermost first, such as ``"action-filter:deny=sending"``."""

    def open(self, split: str) -> AbstractAsyncContextManager[Opened]:
        """Open the environment without wrappers; its resources are closed at the end."""
        raise NotImplementedError

    def missing(self) -> str:
        """What this machine lacks to open the environment; empty: nothing."""
        return ""

    def known_tasks(self) -> Sequence[str] | None:
        """Every task that can be named; ``None``: not known before the environment is open."""
        return None

    def split_tasks(self, split: str) -> Sequence[str] | None:
        """The tasks of a split; ``None``: not known before the environment is open."""
        return self.known_tasks()

    def test_split(self) -> str:
        """The split that is played if none is named; empty: there is none."""
        return next(iter(self.splits), "")

    def training_split(self) -> str:
        """The split for training. Raises ``ConfigError`` if all are for tests."""
        if self.trains_on is None:
            raise ConfigError(f"'{self.name}' is for tests only and must not be used for training")
        return self.trains_on

    @property
    def screenshots_given(self) -> bool:
        """Whether observations have pictures."""
        return bool(getattr(self, "screenshots", False))

    @property
    def fixed_episodes(self) -> bool:
        """Whether the test episodes are given, and no seed chooses them."""
        return False

    def held_out_tasks(self) -> Sequence[str]:
        """Tasks that no training may use."""
        return ()

    def solver(self) -> MakeEnvironment | None:
        """Makes an environment that can grade actions and solve its tasks, for the scripted critic
        and teacher; ``None``: there is none."""
        return None

    def team(self, make_agent: MakeAgent, name: str) -> Policy | None:
        """The policy, if each task determines its own agents and edges; ``None``: it does not."""
        return None

    def test_jobs(self, split: str, names: Sequence[str], count: int, seed: int) -> list[Job]:
        """Test episodes of the named tasks: each in turn, with random seeds of the split."""
        seeds, found = self.seeds.get(split, self.seeds["test"]), []
        if self.evenly:
            return spread_jobs(names, count, seed, seeds)
        for k in range(count):
            round, number = divmod(k, len(names))
            draw = random.Random(derive(seed, "cli", names[number], round))
            found.append((names[number], draw.choice(seeds)))
        return found

    def training_jobs(
        self, names: Sequence[str], count: int, rng: random.Random, seeds: Seeds = "train"
    ) -> list[Job]:
        """Random episodes of the named tasks, with seeds of training or of validation."""
        if self.evenly:
            return spread_jobs(names, count, rng.getrandbits(32), self.seeds[seeds])
        return [(rng.choice(names), rng.choice(self.seeds[seeds])) for _ in range(count)]

    # -- what all benchmarks share ----------------------------------------------------------------

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[Mistake]:
        """What is wrong with the settings, for these splits. Nothing is opened."""
        if lacking := self.missing():
            yield "name", lacking
            return
        for split in splits:
            if split and split not in self.splits:
                has = f"it has {', '.join(self.splits)}" if self.splits else "it has none"
                yield "split", f"'{self.name}' has no split '{split}'; {has}"
                continue
            names = self.split_tasks(split) if split else None
            strange = [task for task in self.tasks if names and task not in names]
            if strange and not self.unknown_task(strange[0]):
                yield "tasks", f"'{strange[0]}' is not in the split '{split}'; leave the split out"
        for name, given in (("tasks", self.tasks), ("held_out", self.held_out)):
            for task in given:
                if mistake := self.unknown_task(task):
                    yield name, mistake
        if both := [task for task in self.tasks if task in self.held_out]:
            yield "held_out", f"'{both[0]}' is to be played and held out; choose"

    def unknown_task(self, task: str, known: Sequence[str] | None = None) -> str:
        """The error text for an unknown task; empty if it exists or the tasks are not known."""
        known = self.known_tasks() if known is None else known
        if known is None or task in known:
            return ""
        return f"'{self.name}' has no task '{task}'; {known_as(task, known)}"

    async def task_names(self, split: str, opened: Opened) -> tuple[str, ...]:
        """The requested tasks, or all tasks of the split that are not held out.

        Raises:
            ConfigError: a requested task does not exist.
        """
        listed = self.known_tasks() if self.tasks else self.split_tasks(split)
        names = await opened.tasks() if listed is None else listed
        for task in self.tasks:
            if names and (mistake := self.unknown_task(task, names)):
                raise ConfigError(mistake)
        return self.tasks or tuple(name for name in names if name not in self.held_out)

    async def jobs(self, split: str, episodes: int, seed: int, opened: Opened) -> list[Job]:
        """The requested test episodes; equal settings give equal episodes.

        Args:
            episodes: their number; 0: one for each named task, or the default.
            seed: chooses them.
        """
        if opened.jobs is not None:
            return opened.jobs(self.tasks)[: episodes or None]
        names = await self.task_names(split, opened)
        if not names:
            raise ConfigError(f"'{self.name}' lists no tasks: name them with env.tasks")
        most = DEFAULT_EPISODES if self.evenly else min(len(names), DEFAULT_EPISODES)
        return self.test_jobs(split, names, episodes or len(self.tasks) or most, seed)
