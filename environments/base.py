"""The base class of environments: a subclass says how a task begins, what the screen shows, and
what an action does.

    class Door(Episodic):
        tasks = ("open",)
        budget = 5

        def begin(self, task, rng):
            self.labels = rng.sample(["handle", "bell"], 2)
            return "open the door by its handle"

        def screen(self):
            return [Element.button(label) for label in self.labels]

        def act(self, action, element):
            if element.text == "handle":
                return Done(reward=1.0)
            return f"nothing happens at the {element.text}"

An environment need not derive from it: see :class:`swarm_ui.environment.Environment`.
"""

from __future__ import annotations

import io
import random
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from swarm_ui.action import POINTING, Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.node import derive
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.rollout import Job, spread_jobs

TRAIN_SEEDS = range(10_000_000)
VALIDATION_SEEDS = range(10_000_000, 20_000_000)
TEST_SEEDS = range(20_000_000, 30_000_000)

Split = Literal["train", "validation", "test"]
SPLIT_SEEDS: Mapping[Split, range] = {
    "train": TRAIN_SEEDS,
    "validation": VALIDATION_SEEDS,
    "test": TEST_SEEDS,
}

T = TypeVar("T")
Shown = Sequence[Element] | Observation
"""What :meth:`Episodic.screen` returns."""


class Done(msgspec.Struct, frozen=True):
    """The end of an episode, as :meth:`Episodic.act` returns it."""

    reward: float
    """1.0 if the task is solved, else 0.0 or the share that is solved, below 1."""
    note: str = ""
    """A note about the last action."""
    truncated: bool = False
    """The episode was cut off before the task was over; the reward is 0."""


Acted = Done | str | None
"""What :meth:`Episodic.act` returns."""


class Progress(msgspec.Struct, frozen=True):
    """How far an episode is: the part of its state that :class:`Episodic` holds."""

    task: str
    seed: int
    budget: int
    goal: str
    observation: Observation
    """The present screen."""
    used: int = 0
    """Number of actions so far."""


class Episodic:
    """An environment whose episodes begin, show screens, and take actions until they end.

    A subclass sets ``tasks`` and ``budget``, and writes :meth:`begin`, :meth:`screen` and
    :meth:`act`, each of which may be ``async``. This class numbers the elements, keeps the history,
    refuses actions on elements that do not exist, and ends the episode when the budget is used up.
    """

    tasks: Sequence[str]
    """Names of the tasks."""
    budget: int = 30
    """Maximum number of actions of an episode; :meth:`begin` may set it for its episode."""
    actions: tuple[ActionType, ...] = ("click", "input_text")
    """The kinds of action that every screen offers; any other is a lost step."""
    seed: int
    """Seed of the last ``reset``; set before :meth:`begin`, for what takes a seed of its own."""

    _progress: Progress | None = None
    _begun = False

    @property
    def name(self) -> str:
        """Name of the environment in results; by default that of the class."""
        return type(self).__name__

    # -- written by a subclass ----------------------------------------------------------------

    def begin(self, task: str, rng: random.Random) -> str | Awaitable[str]:
        """Begin an episode, and return its goal.

        Args:
            task: one of ``tasks``.
            rng: the source of everything random in the episode; equal arguments of ``reset`` give
                an equal generator.
        """
        raise NotImplementedError(f"{type(self).__name__}.begin: return the goal of the episode")

    def screen(self) -> Shown | Awaitable[Shown]:
        """The elements of the present screen, in their order.

        To show more than elements, such as a title or a picture, return an ``Observation``. Its
        goal, actions and history are filled in where they are empty.
        """
        raise NotImplementedError(f"{type(self).__name__}.screen: return the elements")

    def act(self, action: Action, element: Any) -> Acted | Awaitable[Acted]:
        """Do an action. Return ``Done`` if it ends the episode, else a note for the agents or
        nothing.

        Args:
            action: of one of the kinds in ``actions``.
            element: the ``Element`` it points at; ``None`` only for kinds that point at none, such
                as ``scroll``.

        Raises:
            EnvironmentFault: the environment failed.
        """
        raise NotImplementedError(f"{type(self).__name__}.act: do the action")

    def end(self) -> Awaitable[None] | None:
        """Release what an episode holds. Called once for each episode that began: after its last
        action, or before the next one begins, or in ``close``."""

    def knows(self, task: str) -> bool:
        """Whether there is a task of this name. An environment with very many tasks, or one whose
        :meth:`begin` refuses unknown names itself, overrides this."""
        return task in self.tasks

    def misfit(self, action: Action, screen: Observation) -> str:
        """Why an action cannot be done on this screen; empty if :meth:`act` may see it."""
        kind, element = action.action_type, screen.element(action.index)
        if not screen.offers(kind):
            return f"'{kind}' has no effect here, only {', '.join(screen.actions)}"
        if lacking := missing(action, screen):
            return lacking
        if element is None:
            return "point at an element by its index" if kind in POINTING else ""
        if kind == "click" and not element.clickable:
            return f"the {element.role} “{element.label}” cannot be clicked"
        if kind == "input_text" and not element.editable:
            return f"the {element.role} “{element.label}” takes no text"
        return ""

    def past(self, action: Action, screen: Observation) -> Past:
        """The entry of the history for an action on this screen."""
        return screen.past(action)

    # -- the contract of an environment -------------------------------------------------------

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode; equal arguments give equal episodes.

        Raises:
            ConfigError: no such task.
        """
        if not self.knows(task):
            raise ConfigError(f"{self.name}: no task {task!r}; {known_as(task, self.tasks)}")
        await self._finish()
        self.seed = seed
        goal = await ready(self.begin(task, random.Random(derive(seed, task))))
        self._begun = True
        first = self._filled(await ready(self.screen()), goal, ())
        self._progress = Progress(task, seed, self.budget, goal, first)
        return first

    def first_screen(self, task: str, *, seed: int) -> Observation:
        """:meth:`reset` without ``await``, for an environment that waits for nothing."""
        return at_once(self.reset(task=task, seed=seed))

    async def step(self, action: Action) -> Step:
        """Do one action.

        Raises:
            EnvironmentFault: the environment failed, or no episode is running.
        """
        progress = self.progress
        self._progress = None  # no episode is running until this step is done
        before = progress.observation
        history = (*before.history, self.past(action, before))
        note, done = self.misfit(action, before), None
        if note:
            after = replace(before, history=history)
        else:
            outcome: Any = await ready(self.act(action, before.element(action.index)))
            done = outcome if isinstance(outcome, Done) else None
            note = done.note if done else outcome or ""
            after = self._filled(await ready(self.screen()), progress.goal, history)
        used = progress.used + 1
        truncated = done.truncated if done else used >= progress.budget
        if done or truncated:
            await self._finish()
        else:
            self._progress = replace(progress, observation=after, used=used)
        step = Step(observation=after, truncated=truncated, note=note)
        return replace(step, reward=done.reward, terminated=not truncated) if done else step

    async def close(self) -> None:
        """End the episode; a subclass that has more to close overrides this, and calls it."""
        await self._finish()

    # -- episodes for training and tests ------------------------------------------------------

    @classmethod
    def of_split(cls, split: Literal["train", "test"]) -> Sequence[str]:
        """The tasks to draw from; by default all of them in both splits.

        Raises:
            ConfigError: the tasks depend on the object.
        """
        found: object = getattr(cls, "tasks", None)
        if not isinstance(found, Sequence):
            raise ConfigError(f"{cls.__name__}: each object has its own tasks; pass tasks=")
        return found

    @classmethod
    def training_jobs(
        cls, count: int, /, *, seed: int = 0, tasks: Sequence[str] | None = None
    ) -> list[Job]:
        """``count`` episodes as (task, seed) with seeds of ``TRAIN_SEEDS``, evenly spread over the
        tasks (by default all of the split); equal arguments give equal lists."""
        return spread_jobs(tasks or cls.of_split("train"), count, seed, TRAIN_SEEDS)

    @classmethod
    def test_jobs(
        cls, count: int, /, *, seed: int = 0, tasks: Sequence[str] | None = None
    ) -> list[Job]:
        """The same with seeds of ``TEST_SEEDS``, none of which is in :meth:`training_jobs`."""
        return spread_jobs(tasks or cls.of_split("test"), count, seed, TEST_SEEDS)

    # -- the episode --------------------------------------------------------------------------

    @property
    def progress(self) -> Progress:
        """The running episode.

        Raises:
            EnvironmentFault: no episode is running.
        """
        if self._progress is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self._progress

    def _filled(self, shown: Shown, goal: str, history: tuple[Past, ...]) -> Observation:
        """What :meth:`screen` returned, with all that it leaves out."""
        if not isinstance(shown, Observation):
            shown = Observation(goal=goal, elements=tuple(shown))
        elements = shown.elements
        if [element.index for element in elements] != [*range(len(elements))]:
            elements = tuple(replace(e, index=place) for place, e in enumerate(elements))
        return replace(
            shown,
            goal=shown.goal or goal,
            elements=elements,
            actions=shown.actions or self.actions,
            history=shown.history or history,
        )

    async def _finish(self) -> None:
        """End the episode that has begun, if there is one."""
        begun, self._begun, self._progress = self._begun, False, None
        if begun:
            await ready(self.end())


class Stateful(Episodic):
    """An :class:`Episodic` environment that can be saved and restored
    (:class:`~swarm_ui.environment.Restorable`): all that its episode changes is in ``state``, a
    value that never changes, such as a frozen record. :meth:`begin` and :meth:`act` replace it.
    """

    state: Any = None

    def snapshot(self) -> object:
        """The state of the running episode."""
        return self.progress, self.state

    def restore(self, state: object) -> Observation:
        """Continue an episode from a :meth:`snapshot` of this or an equal environment.

        Raises:
            EnvironmentFault: it is no snapshot.
        """
        match state:
            case (Progress() as progress, own):
                self._progress, self.state, self._begun = progress, own, True
                return progress.observation
        raise EnvironmentFault(f"{self.name}: restore expects a snapshot of this environment")


async def ready(value: Any) -> Any:
    """A value, once it is there."""
    return await value if hasattr(value, "__await__") else value


def missing(action: Action, screen: Observation) -> str:
    """Why an action points at no element of a screen; empty if all its elements exist."""
    lacking = (index for index in action.targets if screen.element(index) is None)
    index = next(lacking, None)
    return "" if index is None else f"no element {index}; the screen has {len(screen.elements)}"


def as_png(pixels: Any) -> bytes:
    """An RGB array ``[height, width, 3]`` of bytes as a PNG."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def split_of(seed: int) -> Split:
    """The split whose range a seed is in.

    Raises:
        ConfigError: the seed is in none of the three ranges.
    """
    for split, seeds in SPLIT_SEEDS.items():
        if seed in seeds:
            return split
    raise ConfigError(
        f"seed {seed} belongs to no split; expected 0 <= seed < {TEST_SEEDS.stop}: TRAIN_SEEDS, "
        "VALIDATION_SEEDS or TEST_SEEDS of swarm_ui.environments.base"
    )


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, such as ``reset`` of an environment in
    this process. It needs no event loop."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise EnvironmentFault("the environment waits for something: await the call")


def known_as(name: str, names: Sequence[str]) -> str:
    """What to write instead of a name that does not exist."""
    if close := get_close_matches(name, names, 1):
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"there are {', '.join(names[:8])}{more}"
