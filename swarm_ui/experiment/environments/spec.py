"""The specification of an environment for experiments."""

from __future__ import annotations

import dataclasses
import inspect
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec.structs import replace

from swarm_ui.environments.miniwob.splits import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.plugins.wrapping import wrapped, wrapper_findings
from swarm_ui.experiment.teams import Arm
from swarm_ui.model import ChatModel
from swarm_ui.node import derive
from swarm_ui.rollout import Job, MakeEnvironment, Policy
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut

DEFAULT_EPISODES = 20


@dataclass(frozen=True, slots=True)
class OpenEnvironment:
    """An opened environment, of which any number of instances can be created."""

    make: MakeEnvironment
    max_concurrency: int | None = None
    """Maximum number of concurrent episodes; ``None``: any number."""
    jobs: Callable[[EnvironmentSection], list[Job]] | None = None
    """Chooses the test episodes, if that requires the opened data set."""
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


Seeds = Literal["train", "validation"]
TrainingJobs = Callable[[EnvironmentSection, Sequence[str], int, random.Random, Seeds], list[Job]]


def random_jobs(
    section: EnvironmentSection, tasks: Sequence[str], count: int, rng: random.Random, seeds: Seeds
) -> list[Job]:
    """Random tasks with random seeds of training or of validation."""
    chosen = TRAIN_SEEDS if seeds == "train" else VALIDATION_SEEDS
    return [(rng.choice(tasks), rng.choice(chosen)) for _ in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """An environment by its name on the command line."""

    name: str
    label: str
    """The note below tables of its results."""
    open: Callable[[EnvironmentSection], AbstractAsyncContextManager[OpenEnvironment]]
    """Opens the environment without wrappers; its resources are closed at the end."""
    splits: tuple[str, ...] = ()
    """The splits; the first is the default, a test split. Empty if there are none."""
    trains_on: str | None = ""
    """The only split for training; empty: any; ``None``: all are tests."""
    tasks: Callable[[EnvironmentSection], Sequence[str]] | None = None
    """All tasks of a split, if they are known without a device."""
    split_of: Callable[[Sequence[str]], str] | None = None
    """The split to which chosen tasks belong, where that depends on the tasks."""
    by_user: bool = False
    """Made by code of the user, ``module:factory``."""
    resource: str = ""
    """Name of the limited resource of a cluster node that each worker occupies, such as
    ``"emulator"``; empty: none."""
    reads: tuple[str, ...] = ()
    """Of the settings that only some environments have, those that this environment reads."""
    fixed_episodes: Callable[[EnvironmentSection], bool] = lambda section: False
    """Whether the test episodes are given, and the seed does not choose them."""
    known_tasks: Callable[[], Sequence[str]] | None = None
    """Every task that can be named, if the tasks are known without a device."""
    findings: Callable[[EnvironmentSection], Iterable[Finding]] = lambda section: ()
    """Mistakes in a configuration, and what is missing on this machine."""
    test_jobs: Callable[[EnvironmentSection], list[Job]] | None = None
    """Chooses the test episodes; ``None``: each task in turn, with random test seeds."""
    training_jobs: TrainingJobs = random_jobs
    """Chooses episodes of training tasks, with seeds of training or of validation."""
    held_out: Callable[[], HeldOut] | None = None
    """Tasks and seeds that training must not use; ``None``: the validation and test seeds."""
    team: Callable[[Arm, ChatModel], Policy] | None = None
    """Makes the policy of an arm in environments whose tasks determine the agents and edges of the
    team. It uses only the temperature, the adapter and the length of replies of the arm. ``None``:
    the arm determines agents and edges."""
    demonstrators: Callable[[EnvironmentSection], Policy] | None = None
    """A scripted team whose prompts and replies, in the compact format, are the corpus of stage 1;
    ``None``: one agent walks."""
    solver: Callable[[], MakeEnvironment] | None = None
    """Gives the function that makes the environment, if it can grade actions and solve its tasks,
    for the scripted critic and teacher; ``None``: credit by outcome, and no teacher."""

    def policy(self, arm: Arm, model: ChatModel) -> Policy:
        """The policy of an arm in this environment."""
        return arm.policy(model) if self.team is None else self.team(arm, model)

    @asynccontextmanager
    async def opened(self, section: EnvironmentSection) -> AsyncIterator[OpenEnvironment]:
        """Open the environment, in the wrappers of the section."""
        async with self.open(section) as found:
            yield dataclasses.replace(found, make=wrapped(found.make, section.wrap))

    def all_findings(
        self, section: EnvironmentSection, splits: Sequence[str] = ()
    ) -> Iterator[Finding]:
        """All mistakes in a configuration. ``splits``: used instead of the section's splits."""
        for split in splits or (section.split,):
            if split and split not in self.splits:
                has = f"it has {', '.join(self.splits)}" if self.splits else "it has none"
                yield ("environment", "split"), f"'{section.name}' has no split '{split}'; {has}"
            names = self.tasks(replace(section, split=split)) if split and self.tasks else ()
            if names and (strange := [task for task in section.tasks if task not in names]):
                problem = f"'{strange[0]}' is not in the split '{split}'; leave the split out"
                yield ("environment", "tasks"), problem
        yield from wrapper_findings(section.wrap)
        for split in splits or (section.split,):
            for finding in self.findings(replace(section, split=split)):
                yield finding
                if finding[0] == ("environment", "name"):
                    return
        for name, given in (("tasks", section.tasks), ("held_out", section.held_out)):
            for task in given:
                if mistake := self.unknown_task(task):
                    yield ("environment", name), mistake
        if both := [task for task in section.tasks if task in section.held_out]:
            yield ("environment", "held_out"), f"'{both[0]}' is to be played and held out; choose"

    def for_training(self, section: EnvironmentSection) -> EnvironmentSection:
        """The section with the split for training.

        Raises:
            ConfigError: the environment is for tests only, or the section names another split.
        """
        if self.trains_on is None:
            raise ConfigError(f"'{self.name}' is for tests only and must not be used for training")
        if not self.trains_on:
            return section
        if section.split not in ("", self.trains_on):
            raise ConfigError(
                f"split '{section.split}': only '{self.trains_on}' of '{self.name}' is for training"
                "; leave the split out"
            )
        return replace(section, split=self.trains_on)

    def held_out_rule(self) -> HeldOut:
        """The tasks and seeds that training must not use."""
        from swarm_ui.optim.stage1 import HeldOut

        if self.held_out is not None:
            return self.held_out()
        return HeldOut.of(seeds=[VALIDATION_SEEDS, TEST_SEEDS])

    def unknown_task(self, task: str) -> str:
        """The error text for an unknown task; empty if it exists or the tasks are not known."""
        known = self.known_tasks() if self.known_tasks is not None else (task,)
        return self._not_among(known, task)

    def _not_among(self, known: Sequence[str], task: str) -> str:
        if task in known:
            return ""
        near = get_close_matches(task, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"see: swarm-ui play {self.name}"
        return f"'{self.name}' has no task '{task}'; {hint}"

    async def task_names(
        self, section: EnvironmentSection, environment: OpenEnvironment
    ) -> tuple[str, ...]:
        """The requested tasks, or all tasks of the split.

        Raises:
            ConfigError: an environment of the user does not list a requested task.
        """
        if section.tasks and self.by_user:
            known = tuple(await environment.tasks())
            for task in section.tasks:
                if known and (mistake := self._not_among(known, task)):
                    raise ConfigError(mistake)
        if section.tasks:
            return section.tasks
        names = self.tasks(section) if self.tasks is not None else await environment.tasks()
        return tuple(name for name in names if name not in section.held_out)

    async def jobs(self, section: EnvironmentSection, environment: OpenEnvironment) -> list[Job]:
        """The requested test episodes; equal settings give equal episodes."""
        choose = self.test_jobs or environment.jobs
        if choose is not None:
            return choose(section)
        names = await self.task_names(section, environment)
        if not names:
            raise ConfigError(f"'{section.name}' lists no tasks: name them with --task")
        count = section.episodes or (len(section.tasks) or min(len(names), DEFAULT_EPISODES))
        found = []
        for k in range(count):
            round, number = divmod(k, len(names))
            seed = derive(section.seed, "cli", names[number], round)
            found.append((names[number], random.Random(seed).choice(TEST_SEEDS)))
        return found


Opening = AsyncGenerator[OpenEnvironment, None]
"""The type of the ``open`` functions of environments, which yield once."""
