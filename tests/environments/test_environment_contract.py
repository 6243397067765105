"""One contract over all environments, in our own check and in those of Gymnasium and PettingZoo,
and broken environments that the check notices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from miniwob_browser import needs_browser
from msgspec.structs import replace
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.utils.conversions import parallel_to_aec
from small_world import Bare, Notebook

from swarm_ui import (
    Action,
    ConfigError,
    Element,
    EnvironmentFault,
    Graded,
    Observation,
    Restorable,
    Step,
)
from swarm_ui.environment import Environment
from swarm_ui.environments import (
    AutoWebBench,
    CoordinationEnvironment,
    GymView,
    InventedPhone,
    Mind2Web,
    MiniWobBrowser,
    PhoneEnvironment,
    SplitPhone,
    TeamView,
    check_environment,
    contract_report,
    from_gymnasium,
)
from swarm_ui.environments.base import Acted, Done
from swarm_ui.environments.check import RULES
from swarm_ui.environments.coordination import task_names
from swarm_ui.environments.miniwob import REFERENCE_TASKS
from swarm_ui.environments.recorded import autowebbench, mind2web

Make = Callable[[], Environment]


def lake() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("FrozenLake-v1", is_slippery=False)


ENVIRONMENTS: dict[str, tuple[Make, Sequence[str] | None, Sequence[int]]] = {
    "phone": (PhoneEnvironment, PhoneEnvironment().tasks[::3], (0,)),
    "phone, test": (PhoneEnvironment, PhoneEnvironment().tasks[::9], (20_000_000,)),
    "invented": (lambda: InventedPhone(devices=2), InventedPhone(devices=2).tasks[::13], (0,)),
    "split": (lambda: SplitPhone(agents=5), SplitPhone().tasks[::5], (0,)),
    "coordination": (CoordinationEnvironment, task_names((4, 100))[::4], (0, 20_000_000)),
    "mind2web": (Mind2Web(mind2web.synthetic()).environment, None, (0,)),
    "autowebbench": (AutoWebBench(autowebbench.synthetic()).environment, None, (0,)),
    "gymnasium": (from_gymnasium(lake), None, (0, 1)),
    "gymnasium, there and back": (
        from_gymnasium(lambda: GymView(Notebook, most_actions=64)), None, (0,),
    ),
    "notebook": (Notebook, None, (0, 1)),
    "neither restorable nor graded": (Bare, None, (0, 1)),
}  # fmt: skip
"""Name -> a function that makes it, the tasks (``None``: all), and the seeds."""
ACTIONS = 4096
named = pytest.mark.parametrize("name", ENVIRONMENTS)


@named
def test_the_contract_is_kept(name: str) -> None:
    make, tasks, seeds = ENVIRONMENTS[name]
    report = check_environment(make, tasks=tasks, seeds=seeds)
    world = make()
    optional = {"snapshot": Restorable, "expert": Graded, "grade": Graded}
    absent = {rule for rule, kind in optional.items() if not isinstance(world, kind)}
    assert set(report.checked) == set(RULES) - absent


@named
@pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")  # it has no spec
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    make, tasks, seeds = ENVIRONMENTS[name]
    env = GymView(make, tasks=tasks, seeds=seeds, most_actions=ACTIONS)
    check_env(env)
    env.close()


@named
@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")  # what is not an array
def test_pettingzoo_finds_nothing_wrong(name: str) -> None:
    make, tasks, seeds = ENVIRONMENTS[name]
    env = TeamView(make, agents=2, tasks=tasks, seeds=seeds, most_actions=ACTIONS)
    parallel_api_test(env, num_cycles=10)
    api_test(parallel_to_aec(env), num_cycles=5)
    env.close()


@pytest.mark.browser
@needs_browser()
@pytest.mark.parametrize("every", [40, pytest.param(4, marks=pytest.mark.slow)])
async def test_miniwob_keeps_the_contract(every: int) -> None:
    tasks = REFERENCE_TASKS[::every]
    async with MiniWobBrowser(pages=2) as browser:
        made = iter(browser.environments)
        report = await contract_report(lambda: next(made), tasks=tasks, seeds=(3,))
    assert report.ok, report


# -- a broken environment for every rule ------------------------------------------------------


def having(**members: Any) -> Make:
    """A notebook with other members."""
    return type("Changed", (Notebook,), members)


def stepping(step: Callable[[Any, Step, Action], Step]) -> Make:
    """A notebook that changes its steps, and itself."""

    class Changed(Notebook):
        async def step(self, action: Action) -> Step:
            self.before = self.snapshot()
            return step(self, await super().step(action), action)

    return Changed


def looking(change: Callable[[Observation], Observation]) -> Make:
    """A notebook that shows something else."""

    class Changed(Notebook):
        async def reset(self, *, task: str, seed: int) -> Observation:
            return change(await super().reset(task=task, seed=seed))

        async def step(self, action: Action) -> Step:
            step = await super().step(action)
            return replace(step, observation=change(step.observation))

    return Changed


def gapped(screen: Observation) -> Observation:
    """Elements are numbered from 1."""
    return replace(screen, elements=tuple(replace(e, index=e.index + 1) for e in screen.elements))


def forgetting(world: Notebook, step: Step, action: Action) -> Step:
    """Lost actions are left out of the history."""
    if not step.note or step.ended:
        return step
    history = step.observation.history[:-1]
    return replace(step, observation=replace(step.observation, history=history))


class Eager(Notebook):
    """Acts without an episode."""

    async def step(self, action: Action) -> Step:
        try:
            return await super().step(action)
        except EnvironmentFault:
            await self.reset(task=self.tasks[0], seed=0)
            return await super().step(action)


class Indifferent(Notebook):
    """Takes any task."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        return await super().reset(task="write", seed=seed)


class Raising(Notebook):
    """Fails on an element that does not exist."""

    async def step(self, action: Action) -> Step:
        if action.index is not None:
            self.progress.observation.elements[action.index]
        return await super().step(action)


class Restless(Notebook):
    """Resets to something else every time."""

    resets = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.resets += 1
        return await super().reset(task=task, seed=seed + self.resets)


class Prompt(Notebook):
    """Solved by pressing Enter."""

    def act(self, action: Action, element: Element | None) -> Acted:
        if action.action_type == "keyboard_enter":
            return Done(reward=1.0)
        return super().act(action, element)


class Leaky(Notebook):
    """Shows the right screen after restore, but keeps the text typed since."""

    def restore(self, state: object) -> Observation:
        text = self.state.text
        screen = super().restore(state)
        self.state = self.state._replace(text=text)
        return screen

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        self.state = self.state._replace(text=f"{self.state.text}!")
        return step


class Meddling(Notebook):
    """Does what it grades."""

    def grade(self, action: Action) -> float:
        grade = super().grade(action)
        if action.action_type == "input_text":
            self.state = self.state._replace(text=self.state.word)
        return grade


class Fragile(Notebook):
    """Cannot be closed twice."""

    async def close(self) -> None:
        if self.closed:
            raise ConfigError("closed already")
        await super().close()


Gapped = looking(gapped)
TORN = Element(index=4, role="text", text="\ud800")
NOWHERE = Action(action_type="click", index=99)
MUTANTS = [
    (having(name=""), "members"),
    (having(tasks=("write", "write")), "members"),
    (stepping(lambda world, step, action: replace(step, note="")), "lost-step"),
    (stepping(lambda world, s, action: s if s.ended else replace(s, reward=0.1)), "reward"),
    (stepping(lambda world, step, a: replace(step, truncated=step.terminated)), "ending"),
    (stepping(lambda world, step, a: replace(step, note=str(random.random()))), "determinism"),
    (stepping(forgetting), "history"),
    (looking(lambda screen: replace(screen, goal="")), "goal"),
    (Gapped, "elements"),
    (having(elements_extra=(TORN,)), "json"),
    (having(expert=lambda self: NOWHERE), "expert"),
    (Eager, "idle"),
    (Indifferent, "unknown-task"),
    (Raising, "faults"),
    (Restless, "reset"),
    (Prompt, "actions"),
    (Leaky, "snapshot"),
    (Meddling, "grade"),
    (Fragile, "close"),
]


@pytest.mark.parametrize(("broken", "rule"), MUTANTS)
async def test_the_check_notices_a_broken_rule(broken: Make, rule: str) -> None:
    with pytest.raises(AssertionError, match=f"breaks the rule '{rule}' in ") as raised:
        await contract_report(broken, seeds=(0, 1), budget=40)
    assert RULES[rule] in str(raised.value)


def test_every_rule_can_fail() -> None:
    assert {rule for _, rule in MUTANTS} == set(RULES)


def test_the_episode_is_named() -> None:
    with pytest.raises(AssertionError, match="in task 'write', seed 0: the element at position 0"):
        check_environment(Gapped, tasks=("write",), seeds=(0,))
    with pytest.raises(AssertionError, match="'members' in every episode: it lacks name, tasks"):
        check_environment(object)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        check_environment(Notebook, tasks=())


async def test_both_environments_are_closed_even_if_the_contract_is_broken() -> None:
    made: list[Notebook] = []

    def make() -> Environment:
        made.append(Raising())
        return made[-1]

    with pytest.raises(AssertionError):
        await contract_report(make, tasks=("write",), seeds=(0,))
    assert len(made) == 2 and all(world.closed for world in made)
