"""The environment contract as an executable check.

from swarm_ui.environments import check_environment

print(check_environment(MyEnvironment, tasks=["buy-milk"]))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from typing import Literal

import msgspec
from msgspec.structs import replace

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.engine.tasks import run_blocking
from swarm_ui.environment import Environment, Graded, Restorable, Step, check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.prompts.prompt_format import OPEN, possible_actions

RULES = {
    "members": "it has a name, unique task names, and the methods reset, step and close",
    "unknown-task": "reset refuses an unknown task with ConfigError",
    "reset": "equal resets give equal screens and an empty history: make a Random(seed) in reset",
    "determinism": "equal actions give equal steps: use no clock, global generator or order of set",
    "elements": "elements are numbered 0, 1, 2 …, and bounds are left, top, right, bottom",
    "goal": "every observation has a goal",
    "actions": "offered kinds of action are in ACTION_TYPES, once, and can be tried without a "
    "target: if there is nothing to do, return a note",
    "json": "a JSON round trip changes nothing: no NaN, no lone surrogates, tuples for lists",
    "lost-step": "an action that makes no sense changes nothing and gets a note: check it first",
    "reward": "the reward is 1.0 on the step that terminates a solved task, else 0.0, or the share "
    "below 1 that is solved when it terminates: shaping belongs in the note",
    "ending": "an episode is terminated or truncated, not both, and lost steps use up its budget",
    "history": "the history grows by one with every action, lost ones too: append a Past first",
    "idle": "a step outside an episode raises EnvironmentFault: remember whether one is running",
    "faults": "a failure is an EnvironmentFault, or a step with 'fault' that does not end the "
    "episode: catch other exceptions and raise EnvironmentFault from them",
    "snapshot": "after restore, the same actions lead to the same steps: a snapshot has all that "
    "a step reads or changes, also history and generator",
    "expert": "the expert's actions solve the task within the budget, on the screen just shown",
    "grade": "grade is 1.0 for the expert's action, 0.0 for nonsense or a false end, and changes "
    "nothing: grade on a copy of the state",
    "close": "close can be called twice, and ends the episode",
}
"""Every rule by its name: what holds, and how to bring it about."""

WALK = 8
"""Number of random actions whose steps are compared."""
BACK = Action(action_type="navigate_back")
COMPLETE = Action(action_type="status", goal_status="complete")
NOWHERE = Action(action_type="click", index=9_999)
TRIES = (
    NOWHERE, BACK, COMPLETE,
    Action(action_type="input_text", index=9_999, text="x"),
    Action(action_type="long_press", index=9_999),
    Action(action_type="double_tap", index=9_999),
    Action(action_type="select", index=9_999, text="x"),
    Action(action_type="scroll", direction="down"),
    Action(action_type="swipe", direction="up"),
    Action(action_type="open_app", app_name="no such app"),
    Action(action_type="answer", text="x"),
    Action(action_type="keyboard_enter"),
    Action(action_type="navigate_home"),
    Action(action_type="wait"),
)  # fmt: skip
"""An action of each kind, on no element."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was checked; ``print(report)`` lists it. A broken rule is raised."""

    environment: str
    checked: tuple[str, ...]
    """The rules that apply to the environment. All of them are kept."""
    ok: Literal[True] = True

    def __str__(self) -> str:
        says = {rule: RULES[rule].partition(": ")[0] for rule in self.checked}
        lines = [f"  {rule:12}  {told}" for rule, told in says.items()]
        return "\n".join([f"{self.environment} keeps the contract:", *lines])


def check_environment(
    make: Callable[[], Environment],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1),
    budget: int = 200,
) -> Report:
    """Check that an environment keeps the contract of :mod:`swarm_ui.environment`.

    Two environments are made, reset many times, and closed, on an event loop of their own.

    Args:
        make: makes a fresh environment; called twice.
        tasks: the tasks to check; all by default.
        seeds: the seeds to check of each task.
        budget: maximum number of steps of an episode.

    Raises:
        AssertionError: a rule is broken. The message says which one, where, and what to do.
        ConfigError: there are no tasks or seeds.
    """
    return run_blocking(contract_report(make, tasks=tasks, seeds=seeds, budget=budget))


async def contract_report(
    make: Callable[[], Environment],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1),
    budget: int = 200,
) -> Report:
    """:func:`check_environment` on the running event loop: for environments that share something
    of that loop, such as a browser."""
    check_factory(make)
    one, two = make(), make()
    trial = _Trial(one, two, budget)
    try:
        trial.has_members()
        chosen = one.tasks if tasks is None else tasks
        if not chosen or not seeds:
            raise ConfigError(f"check_environment: {one.name} has no tasks or no seeds to check")
        await trial.idles()
        for trial.task, trial.seed in product(chosen, seeds):
            for check in (trial.repeats, trial.tries, trial.restores, trial.solves):
                await check()
        await trial.closes()
    finally:
        for env in (one, two):
            with suppress(Exception):  # the rule about closing is checked above
                await env.close()
    absent = set() if isinstance(one, Restorable) else {"snapshot"}
    absent |= set() if isinstance(one, Graded) else {"expert", "grade"}
    return Report(environment=one.name, checked=tuple(r for r in RULES if r not in absent))


class _Trial:
    """The checks of two equal environments, and resets and steps that check what they return."""

    def __init__(self, one: Environment, two: Environment, budget: int) -> None:
        self.one, self.two, self.budget = one, two, budget
        self.task, self.seed = "", 0
        self.done = 0
        """Number of actions of the running episode."""

    def expect(self, rule: str, holds: object, problem: str) -> None:
        if not holds:
            where = f"task {self.task!r}, seed {self.seed}" if self.task else "every episode"
            kind = type(self.one).__name__
            raise AssertionError(
                f"{kind} breaks the rule '{rule}' in {where}: {problem}. Rule: {RULES[rule]}"
            )

    @contextmanager
    def guarded(
        self, doing: str, rule: str = "faults", wanted: type[Exception] | None = None
    ) -> Iterator[None]:
        """An exception of the environment in this block breaks a rule, or the lack of the wanted
        one."""
        try:
            yield
        except Exception as error:
            if wanted is None or not isinstance(error, wanted):
                self.expect(rule, False, f"{doing} raised {type(error).__name__}: {error}")
        else:
            self.expect(rule, wanted is None, f"{doing} was done")

    async def reset(self, env: Environment | None = None) -> Observation:
        with self.guarded("reset"):
            screen = await (env or self.one).reset(task=self.task, seed=self.seed)
        self.done = 0
        self.shown(screen)
        self.expect("reset", not screen.history, "the history is not empty after reset")
        return screen

    async def step(self, action: Action, env: Environment | None = None) -> Step:
        with self.guarded(f"step with {action}"):
            step = await (env or self.one).step(action)
        self.done += 1
        self.shown(step.observation)
        self.round_trip(step)
        told = f"{action}: reward {step.reward}, terminated={step.terminated}, "
        told += f"truncated={step.truncated}, fault={step.fault!r}"
        self.expect("faults", step.fault is None, told)
        right = step.reward == 0 or (step.terminated and 0 < step.reward <= 1)
        self.expect("reward", right, told)
        self.expect("ending", not (step.terminated and step.truncated), told)
        length = len(step.observation.history)
        told = f"{length} actions in the history after {self.done}"
        self.expect("history", length == self.done, told)
        return step

    def shown(self, screen: Observation) -> None:
        """Check the rules of every observation."""
        for position, element in enumerate(screen.elements):
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            fits = element.index == position and left <= right and top <= bottom
            told = f"index {element.index} and bounds {element.bounds}"
            self.expect("elements", fits, f"the element at position {position} has {told}")
        self.expect("goal", screen.goal, "the goal is empty")
        known = [kind for kind in ACTION_TYPES if kind in screen.actions]
        told = f"it offers {', '.join(screen.actions)}"
        self.expect("actions", len(known) == len(screen.actions), told)
        self.round_trip(screen)

    def round_trip(self, record: Observation | Step) -> None:
        with self.guarded("writing and reading it as JSON", "json"):
            back = msgspec.json.decode(msgspec.json.encode(record), type=type(record))
        self.expect("json", back == record, "it changes in a JSON round trip")

    # -- the checks ---------------------------------------------------------------------------

    def has_members(self) -> None:
        env, names = self.one, ("name", "tasks", "reset", "step", "close")
        lacks = [name for name in names if getattr(env, name, None) is None]
        self.expect("members", not lacks, f"it lacks {', '.join(lacks)}")
        self.expect("members", env.name, "the name is empty")
        self.expect("members", len(set(env.tasks)) == len(env.tasks), "a task is listed twice")

    async def idles(self) -> None:
        with self.guarded("a step before the first reset", "idle", EnvironmentFault):
            await self.one.step(BACK)
        with self.guarded("reset with an unknown task", "unknown-task", ConfigError):
            await self.one.reset(task="no such task", seed=0)

    async def repeats(self) -> None:
        """Equal resets, and equal actions after them, give equal screens and steps."""
        rng = random.Random(f"{self.task}/{self.seed}")
        first = screen = await self.reset()
        walk: list[tuple[Action, Step]] = []
        while len(walk) < WALK and not (walk and walk[-1][1].ended):
            able = [a for a in choices(screen, ("x",)) if a.action_type != "status"]
            if not able:
                break
            action = rng.choice(able)
            walk.append((action, await self.step(action)))
            screen = walk[-1][1].observation
        for env, which in ((self.one, "the same environment"), (self.two, "another environment")):
            again = await self.reset(env)
            same = again.screen_key() == first.screen_key() and again.actions == first.actions
            self.expect("reset", same, f"{which} gave different screens for equal arguments")
        for number, (action, step) in enumerate(walk, start=1):
            same = _pictureless(await self.step(action, self.two)) == _pictureless(step)
            self.expect("determinism", same, f"step {number}, {action}, gave another step")

    async def tries(self) -> None:
        """Actions without a target are lost, what is offered gives no reward at once, and the
        budget ends."""
        for action in TRIES:
            before, nonsense = await self.reset(), action.index is not None
            if not (nonsense or before.offers(action.action_type)):
                continue
            step = await self.step(action)
            free = step.reward and action.action_type not in ("status", "answer")
            self.expect("actions", not free, f"{action} at once is rewarded")
            if nonsense:
                self.expect("lost-step", not step.terminated, f"{action} ends the episode")
                self.expect("lost-step", step.note, f"{action} gets no note")
                labels = [[e.label for e in s.elements] for s in (before, step.observation)]
                self.expect("lost-step", labels[0] == labels[1], f"{action} changes the screen")
        await self.reset()
        step = await self.step(NOWHERE)
        while not step.ended and self.done < self.budget:
            step = await self.step(NOWHERE)
        told = f"not truncated after {self.budget} lost steps at most"
        self.expect("ending", step.truncated, told)
        with self.guarded("a step after the end", "idle", EnvironmentFault):
            await self.one.step(BACK)

    async def restores(self) -> None:
        """The same steps follow a snapshot again, also when the episode has ended meanwhile."""
        env, walks = self.one, list[list[Step]]()
        if not isinstance(env, Restorable):
            return
        start = back = await self.reset()
        with self.guarded("snapshot"):
            state = env.snapshot()
        for round in range(3):
            with self.guarded("restore"):
                if round:
                    back = env.restore(state)
                if round == 2:
                    await env.step(COMPLETE)
                    back = env.restore(state)
            self.done = 0
            self.expect("snapshot", back == start, "restore does not give the snapshot's screen")
            step = await self.step(Action(action_type="click", index=0))
            walk = [step] if step.ended else [step, await self.step(BACK)]
            walks.append([_pictureless(step) for step in walk])
            told = "after restore the same actions give different steps"
            self.expect("snapshot", walks[-1] == walks[0], told)

    async def solves(self) -> None:
        env = self.one
        if not isinstance(env, Graded):
            return
        await self.reset()
        with self.guarded("expert and grade"):
            early, graded = env.expert().action_type != "status", env.grade(COMPLETE)
        if early:
            step = await self.step(COMPLETE)
            told = f"declaring success at once is graded {graded} and rewarded {step.reward}"
            self.expect("grade", graded == 0 == step.reward, told)
        screen = await self.reset()
        while self.done < self.budget:
            with self.guarded("expert and grade"):
                action = env.expert()
                right, wrong, again = env.grade(action), env.grade(NOWHERE), env.expert()
            pointed = action.index is None or screen.element(action.index) is not None
            self.expect("expert", pointed, f"{action} points at no element of the screen")
            self.expect("grade", right == 1.0, f"the expert's {action} is graded {right}")
            self.expect("grade", wrong == 0.0, f"a click on no element is graded {wrong}")
            self.expect("grade", again == action, f"after grading the expert wants {again}")
            step = await self.step(action)
            screen = step.observation
            if step.ended:
                self.expect("expert", step.reward == 1.0, f"it ends with reward {step.reward}")
                return
        self.expect("expert", False, f"not done after {self.budget} actions")

    async def closes(self) -> None:
        await self.reset()
        with self.guarded("close", "close"):
            for _ in range(2):
                await self.one.close()
        with self.guarded("a step after close", "close", EnvironmentFault):
            await self.one.step(BACK)


def choices(screen: Observation, texts: Sequence[str] = ()) -> Iterator[Action]:
    """Every action that the screen offers, except ``open_app``; ``status`` comes last. Each of
    ``texts`` is typed into each field, selected, and given as an answer."""
    for action in possible_actions(Decision(observation=screen)):
        if not isinstance(action, Action) or action.app_name is not None:
            continue
        if action.text == OPEN:
            yield from (replace(action, text=text) for text in texts)
            continue
        element = screen.element(action.index)
        if element is None or element.clickable:
            yield action


def _pictureless(step: Step) -> Step:
    """The step without its screenshot; pixels may differ."""
    return replace(step, observation=replace(step.observation, png=None))
