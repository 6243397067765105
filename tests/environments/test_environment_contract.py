"""One contract over all environments, and a checker that notices when it is broken."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from miniwob_browser import needs_browser
from msgspec.structs import replace
from small_world import FIELD, Bare, Notebook

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.environments.contract_check.check import check_environment
from swarm_ui.environments.contract_check.report import RULES
from swarm_ui.environments.coordination import CoordinationEnvironment, task_names
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.invented import InventedPhone
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation

Make = Callable[[], Environment]

INVENTED = InventedPhone(devices=2)
ENVIRONMENTS = [
    pytest.param(PhoneEnvironment, None, (0,), id="phone"),
    pytest.param(
        PhoneEnvironment, PhoneEnvironment().tasks[::5], (20_000_000,), id="phone-test-seeds"
    ),
    pytest.param(
        lambda: PhoneEnvironment(screenshots=True),
        ("notes-create",),
        (3,),
        id="phone-screenshots",
        marks=pytest.mark.slow,
    ),
    pytest.param(lambda: InventedPhone(devices=2), INVENTED.tasks[::9], (0,), id="invented"),
    pytest.param(
        CoordinationEnvironment, task_names((4, 100))[::4], (0, 20_000_000), id="coordination"
    ),
    pytest.param(lambda: SplitPhone(agents=5), SplitPhone().tasks[::3], (0,), id="split"),
    pytest.param(
        lambda: SplitPhone(agents=5, whole=True), SplitPhone().tasks[::5], (0,), id="split-whole"
    ),
    pytest.param(Notebook, None, (0, 1), id="notebook"),
    pytest.param(Bare, None, (0, 1), id="neither restorable nor graded"),
]
"""(make, tasks or None for all, seeds) of every environment the contract is checked on."""


@pytest.mark.parametrize(("make", "tasks", "seeds"), ENVIRONMENTS)
async def test_environment_keeps_the_contract(
    make: Make, tasks: tuple[str, ...] | None, seeds: tuple[int, ...]
) -> None:
    report = await check_environment(make, tasks=tasks, seeds=seeds)
    assert report.ok and report.broken == ()
    world = make()
    optional = {
        "snapshot": isinstance(world, Restorable),
        "expert": isinstance(world, Graded),
        "grade": isinstance(world, Graded),
    }
    assert {rule: rule in report.tried for rule in RULES} == {
        **dict.fromkeys(RULES, True)
    } | optional


@pytest.mark.browser
@needs_browser()
@pytest.mark.parametrize("every", [40, pytest.param(4, marks=pytest.mark.slow)])
async def test_miniwob_keeps_the_contract(every: int) -> None:
    tasks = REFERENCE_TASKS[::every]
    async with MiniWobBrowser(pages=2) as browser:
        made = iter(browser.environments)
        report = await check_environment(lambda: next(made), tasks=tasks, seeds=(3,))
        assert report.ok and "determinism" in report.tried


# -- a broken environment for every rule ------------------------------------------------------


class Nameless(Notebook):
    name = ""  # type: ignore[assignment]


class Doubled(Notebook):
    tasks = ("write", "write")  # type: ignore[assignment]


class Stringly(Notebook):
    """Tells its screen as text."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        return str(await super().reset(task=task, seed=seed))  # type: ignore[return-value]


class Eager(Notebook):
    """Acts without an episode."""

    async def step(self, action: Action) -> Step:
        self.running = True
        return await super().step(action)


class Indifferent(Notebook):
    """Takes any task."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        return await super().reset(task="write", seed=seed)


class Raw(Notebook):
    """Lets out what its world raises."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in self.tasks:
            raise KeyError(task)
        return await super().reset(task=task, seed=seed)


class Raising(Notebook):
    """Fails on an element that does not exist."""

    async def step(self, action: Action) -> Step:
        if self.running and action.index is not None:
            self.look().elements[action.index]
        return await super().step(action)


class Mute(Notebook):
    """Breaks without a reason, and ends the episode as if it had been lost."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return replace(step, fault="", terminated=True) if action.action_type == "wait" else step


class Restless(Notebook):
    """Resets to something else every time."""

    resets = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.resets += 1
        return await super().reset(task=task, seed=seed + self.resets)


class Nostalgic(Notebook):
    """Keeps the history of the last episode."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        before = self.history
        await super().reset(task=task, seed=seed)
        self.history = before
        return self.look()


class Moody(Notebook):
    """Has something else to say at every step."""

    async def step(self, action: Action) -> Step:
        return replace(await super().step(action), note=str(random.random()))


class Gapped(Notebook):
    """Numbers elements from 1."""

    def look(self) -> Observation:
        screen = super().look()
        moved = [replace(e, index=e.index + 1) for e in screen.elements]
        return replace(screen, elements=tuple(moved))


class InsideOut(Notebook):
    elements_extra = (Element(index=4, role="text", text="Tip", bounds=(50, 0, 10, 20)),)


class Aimless(Notebook):
    def look(self) -> Observation:
        return replace(super().look(), goal="")


class Inventive(Notebook):
    """Offers a kind of action that nobody knows."""

    def look(self) -> Observation:
        offered: tuple[ActionType, ...] = ("click", "shake")  # type: ignore[assignment]
        return replace(super().look(), actions=offered)


class Prompt(Notebook):
    """Solved by pressing Enter."""

    def act(self, action: Action, element: Element | None) -> tuple[str, bool]:
        if action.action_type == "keyboard_enter":
            self.saved, self.text = True, self.word
            return "", True
        return super().act(action, element)


class Torn(Notebook):
    """Holds a character that is none."""

    elements_extra = (Element(index=4, role="text", text="\ud800"),)


class Listed(Notebook):
    """Keeps elements in a list."""

    def look(self) -> Observation:
        screen = super().look()
        return replace(screen, elements=list(screen.elements))  # type: ignore[arg-type]


class Strict(Notebook):
    """Ends the episode at the first action that makes no sense."""

    def act(self, action: Action, element: Element | None) -> tuple[str, bool]:
        note, over = super().act(action, element)
        return note, over or bool(note)


class Silent(Notebook):
    async def step(self, action: Action) -> Step:
        return replace(await super().step(action), note="")


class Careless(Notebook):
    """Shows something new if there is no element of that number."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.elements_extra = ()
        return await super().reset(task=task, seed=seed)

    def act(self, action: Action, element: Element | None) -> tuple[str, bool]:
        if element is None:
            self.elements_extra = (Element(index=4, role="text", text="Oops"),)
        return super().act(action, element)


class Generous(Notebook):
    """Rewards every end."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return replace(step, reward=1.0 if step.ended else 0.0)


class Shaped(Notebook):
    """Rewards a part of the way."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return step if step.ended else replace(step, reward=0.1)


class Proud(Notebook):
    """Rewards an unsolved task as much as a solved one, and more."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return replace(step, reward=2.0) if step.terminated else step


class Partial(Notebook):
    """A wrong answer ends the task, and is rewarded with a share."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        if action.action_type != "answer" or step.ended:
            return step
        self.running = False
        return replace(step, reward=0.5, terminated=True)


class Endless(Notebook):
    """Goes on for ever."""

    lost = 0

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        self.running = self.running or step.truncated
        return replace(step, truncated=False)


class Both(Notebook):
    """Ends a task at the budget in two ways."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return replace(step, truncated=True) if step.terminated else step


class Forgetting(Notebook):
    """Leaves lost actions out of the history."""

    async def step(self, action: Action) -> Step:
        before = self.history
        step = await super().step(action)
        if not step.note or not self.running:
            return step
        self.history = before
        return replace(step, observation=self.look())


class Sticky(Notebook):
    """Leads back to the beginning, whatever was put aside."""

    def restore(self, state: object) -> Observation:
        super().restore(state)
        self.history = ()
        return self.look()


class Leaky(Notebook):
    """Shows the right screen after restore, but keeps the text typed since."""

    def restore(self, state: object) -> Observation:
        text = self.text
        screen = super().restore(state)
        self.text = text
        return screen

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        self.text += "!"
        return step


class Final(Notebook):
    """Cannot be taken up again once it is over."""

    def restore(self, state: object) -> Observation:
        over = not self.running
        screen = super().restore(state)
        self.running = not over
        return screen


class Lost(Notebook):
    """Does not know the way."""

    def expert(self) -> Action:
        return Action(action_type="input_text", index=FIELD, text="wine")


class Pointless(Notebook):
    """Points beside the screen."""

    def expert(self) -> Action:
        return Action(action_type="click", index=77)


class Blind(Notebook):
    """Grades everything right."""

    def grade(self, action: Action) -> float:
        return 1.0


class Meddling(Notebook):
    """Does what it grades."""

    def grade(self, action: Action) -> float:
        grade = super().grade(action)
        if action.action_type == "input_text":
            self.text = self.word
        return grade


class Fragile(Notebook):
    """Cannot be closed twice."""

    async def close(self) -> None:
        if self.closed:
            raise ConfigError("closed already")
        await super().close()


class Undead(Notebook):
    """Goes on after it was closed."""

    async def close(self) -> None:
        self.closed += 1


MUTANTS = [
    (Nameless, "members", "name is ''"),
    (Doubled, "members", "a task is listed twice"),
    (Stringly, "members", "reset returned a str, not an Observation"),
    (Eager, "idle", "a step before the first reset was done"),
    (Eager, "idle", "a step after the end was done"),
    (Indifferent, "unknown-task", "reset with an unknown task was done"),
    (Raw, "unknown-task", "raised KeyError"),
    (Raising, "faults", "raised IndexError"),
    (Mute, "faults", "fault is '' with terminated=True"),
    (Restless, "reset", "different screens for equal arguments"),
    (Nostalgic, "reset", "the history is not empty after reset"),
    (Moody, "determinism", "gave a different step"),
    (Gapped, "elements", "the element at position 0 has index 1"),
    (InsideOut, "elements", "element 4 has bounds (50, 0, 10, 20)"),
    (Aimless, "goal", "the goal is empty"),
    (Inventive, "actions", "offers unknown kinds: shake"),
    (Prompt, "actions", "keyboard_enter at once is rewarded"),
    (Torn, "json", "cannot be written and read"),
    (Listed, "json", "changes in a JSON round trip"),
    (Strict, "lost-step", "ends the episode"),
    (Silent, "lost-step", "gets no note"),
    (Careless, "lost-step", "changes the screen"),
    (Generous, "reward", "reward 1.0 with terminated=False, truncated=True"),
    (Shaped, "reward", "reward 0.1 with terminated=False"),
    (Proud, "reward", "reward 2.0 with terminated=True"),
    (Endless, "ending", "not truncated after 40 lost steps"),
    (Both, "ending", "terminated and truncated"),
    (Forgetting, "history", "0 actions in the history after 1"),
    (Sticky, "snapshot", "restore after the end gives another screen"),
    (Leaky, "snapshot", "the same actions give different steps"),
    (Final, "faults", "the environment failed in step"),
    (Lost, "expert", "it ends with reward 0.0"),
    (Pointless, "expert", "points at no element"),
    (Blind, "grade", "declaring success at once is graded right"),
    (Meddling, "grade", "after grading the expert wants"),
    (Fragile, "close", "close raised ConfigError: closed already"),
    (Undead, "close", "a step after close was done"),
]


@pytest.mark.parametrize(
    ("broken", "rule", "problem"), MUTANTS, ids=[f"{m[0].__name__}-{m[1]}" for m in MUTANTS]
)
async def test_checker_notices_a_broken_contract(broken: Make, rule: str, problem: str) -> None:
    report = await check_environment(broken, seeds=(0, 1), budget=40, raises=False)
    found = [finding.problem for finding in report.findings if finding.rule == rule]
    assert any(problem in text for text in found), report.findings
    assert rule in report.broken and not report.ok
    assert f"to fix: {RULES[rule].fix}" in str(report)


async def test_the_end_of_an_unsolved_task_may_be_rewarded_with_a_share() -> None:
    report = await check_environment(Partial, seeds=(0, 1))
    assert report.ok and "reward" in report.tried


def test_every_rule_can_fail() -> None:
    assert {rule for _, rule, _ in MUTANTS} == set(RULES)


async def test_a_broken_contract_raises_the_whole_report() -> None:
    with pytest.raises(AssertionError) as raised:
        await check_environment(Gapped, tasks=("write",), seeds=(0,))
    told = str(raised.value)
    assert "FAIL  elements" in told and "ok    goal" in told
    assert "task 'write', seed 0: the element at position 0 has index 1" in told
    assert "the contract is broken: " in told


async def test_what_is_no_environment_is_told_apart() -> None:
    report = await check_environment(object, raises=False)  # type: ignore[arg-type]
    assert [f.problem for f in report.findings] == ["object lacks name, tasks, reset, step, close"]


async def test_a_rule_can_be_left_out() -> None:
    report = await check_environment(Moody, without=("determinism", "snapshot"))
    assert report.ok and "determinism" not in report.tried
    with pytest.raises(ConfigError, match="no rule 'speed'; expected one of members"):
        await check_environment(Notebook, without=("speed",))


async def test_nothing_to_check_is_refused() -> None:
    with pytest.raises(ConfigError, match="no tasks or no seeds"):
        await check_environment(Notebook, tasks=())


async def test_both_environments_are_closed_even_if_the_contract_is_broken() -> None:
    made: list[Notebook] = []

    def make() -> Environment:
        made.append(Gapped())
        return made[-1]

    await check_environment(make, tasks=("write",), seeds=(0,), raises=False)
    assert len(made) == 2 and all(world.closed for world in made)
