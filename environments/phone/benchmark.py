"""The phone in experiments: as it ships, with invented apps, and with its apps side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Count, Natural, Opened
from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    blind_tasks,
    is_simple,
)
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.environments.phone.templates import tasks
from swarm_ui.rollout import MakeEnvironment


class _Phones(Benchmark):
    """Episodes that are drawn evenly from all tasks."""

    trains_on: ClassVar[str | None] = "train"
    evenly: ClassVar[bool] = True
    kind: ClassVar[type[PhoneEnvironment]] = PhoneEnvironment

    def phone(self, split: str) -> Callable[..., PhoneEnvironment]:
        """Makes a phone of a split."""
        return self.kind

    def known_tasks(self) -> Sequence[str] | None:
        return self.kind.tasks

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        make = self.phone(split)
        yield Opened(partial(make, screenshots=True) if self.screenshots_given else make)

    def solver(self) -> MakeEnvironment:
        return self.phone("train")


class Phone(_Phones):
    """The simulated phone."""

    label: ClassVar[str] = "The phone is simulated: its scores are not AndroidWorld scores"
    splits: ClassVar[tuple[str, ...]] = ("parameters", "templates", "apps", "validation", "train")

    name: Literal["phone"] = "phone"
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    def split_tasks(self, split: str) -> Sequence[str]:
        if split == "templates":
            return tasks("new_templates")
        return tasks("new_apps" if split == "apps" else "train")

    def held_out_tasks(self) -> Sequence[str]:
        known = tasks("train")
        return [name for name in self.kind.tasks if name not in known]


class Invented(_Phones):
    """Phones with invented apps: any number of training devices, test devices, and the blind
    set."""

    label: ClassVar[str] = (
        "The phone and its apps are invented: scores on it are not AndroidWorld scores"
    )
    splits: ClassVar[tuple[str, ...]] = ("devices", "blind", "parameters", "validation", "train")

    name: Literal["invented"] = "invented"
    devices: Count = 32
    """Number of devices, of 8 apps each."""
    first: Natural = 0
    """Number of the first device for training, which is also the first of ``parameters``."""
    single: bool = False
    """Only tasks with one goal in one app, as on the phone."""
    wordings: Literal["few", "many"] = "many"
    """Wordings of each kind of goal."""
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    def known_tasks(self) -> None:
        return None

    def phone(self, split: str) -> Callable[..., InventedPhone]:
        first = {"": UNSEEN, "devices": UNSEEN, "blind": BLIND}.get(split, self.first)
        devices = BLIND_DEVICES if first == BLIND else self.devices
        return partial(InventedPhone, devices=devices, first=first, wordings=self.wordings)

    def split_tasks(self, split: str) -> Sequence[str]:
        tasks = self.phone(split)().tasks
        return [name for name in tasks if is_simple(name)] if self.single else tasks

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        known = [split for split in splits if split in ("", *self.splits)]
        yield from super().mistakes([split for split in splits if split not in known])
        for split in known:
            phone = self.phone(split)()
            for task in self.tasks:
                if task in PhoneEnvironment.tasks or not phone.knows(task):
                    yield "tasks", f"'invented' has no task '{task}'; such as {phone.tasks[0]}"

    async def task_names(self, split: str, opened: Opened) -> tuple[str, ...]:
        """The requested tasks, which may be on any device of the split, or all that it lists."""
        return self.tasks or tuple(n for n in self.split_tasks(split) if n not in self.held_out)

    def held_out_tasks(self) -> Sequence[str]:
        tested = InventedPhone(devices=Invented().devices, first=UNSEEN).tasks
        return [*tested, *blind_tasks()]


class SplitScreen(_Phones):
    """The phone whose apps are open side by side, one for each agent."""

    label: ClassVar[str] = (
        "The phone is simulated, its apps are open side by side; not AndroidWorld scores"
    )
    splits: ClassVar[tuple[str, ...]] = ("parameters", "templates", "validation", "train")

    kind: ClassVar[type[PhoneEnvironment]] = SplitPhone
    name: Literal["phone-split"] = "phone-split"

    def split_tasks(self, split: str) -> Sequence[str]:
        """The templates of a split; those of ``parameters`` are the training templates."""
        return split_tasks("new_templates" if split == "templates" else "train")

    def held_out_tasks(self) -> Sequence[str]:
        return [*split_tasks("validation"), *split_tasks("new_templates")]
