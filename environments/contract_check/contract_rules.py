"""The checks of the contract's rules; each runs its own episodes."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.environments.action_choices import choices
from swarm_ui.environments.contract_check.trial import CannotGoOn, Trial, pictureless
from swarm_ui.errors import ConfigError, EnvironmentFault

UNKNOWN_TASK = "no such task"
NOWHERE = Action(action_type="click", index=9_999)
BACK = Action(action_type="navigate_back")
COMPLETE = Action(action_type="status", goal_status="complete")
WALK = 8
"""Number of random actions whose steps are compared."""
_TRIES: dict[str, Action] = {
    "click": NOWHERE,
    "double_tap": Action(action_type="double_tap", index=9_999),
    "long_press": Action(action_type="long_press", index=9_999),
    "input_text": Action(action_type="input_text", index=9_999, text="x"),
    "select": Action(action_type="select", index=9_999, text="x"),
    "scroll": Action(action_type="scroll", direction="down"),
    "swipe": Action(action_type="swipe", direction="up"),
    "open_app": Action(action_type="open_app", app_name="no such app"),
    "answer": Action(action_type="answer", text="x"),
    "status": COMPLETE,
    "keyboard_enter": Action(action_type="keyboard_enter"),
    "navigate_back": BACK,
    "navigate_home": Action(action_type="navigate_home"),
    "wait": Action(action_type="wait"),
}


async def episode_rules(
    trial: Trial, one: Environment, two: Environment, task: str, seed: int, budget: int
) -> None:
    """Check all rules that need an episode. If one check cannot continue, the other rules are
    checked nevertheless."""
    rules: list[Callable[[], Awaitable[None]]] = [
        partial(_resets, trial, one, two, task, seed),
        partial(_repeats, trial, one, two, task, seed),
        partial(_nonsense, trial, one, task, seed),
        partial(_offers, trial, one, task, seed),
        partial(_runs_out, trial, one, task, seed, budget),
        partial(_restores, trial, one, task, seed),
        partial(_declares, trial, one, task, seed),
        partial(_solves, trial, one, task, seed, budget),
    ]
    for rule in rules:
        with suppress(CannotGoOn):
            await rule()


def members(trial: Trial, env: object) -> bool:
    kind = type(env).__name__
    lacks = [
        m for m in ("name", "tasks", "reset", "step", "close") if getattr(env, m, None) is None
    ]
    if not trial.expect("members", not lacks, f"{kind} lacks {', '.join(lacks)}"):
        return False
    assert isinstance(env, Environment)
    trial.expect("members", isinstance(env.name, str) and bool(env.name), f"name is {env.name!r}")
    tasks = list(env.tasks)
    trial.expect("members", bool(tasks), "tasks is empty")
    trial.expect("members", len(set(tasks)) == len(tasks), "a task is listed twice")
    return True


async def outside(trial: Trial, env: Environment) -> None:
    """Check that a step before the first reset, and a reset with an unknown task, are refused."""
    await trial.refuses(env.step(BACK), EnvironmentFault, "idle", "a step before the first reset")
    reset = env.reset(task=UNKNOWN_TASK, seed=0)
    await trial.refuses(reset, ConfigError, "unknown-task", "reset with an unknown task")


async def _resets(trial: Trial, one: Environment, two: Environment, task: str, seed: int) -> None:
    first = await trial.reset(one, task, seed)
    for other, which in ((two, "another environment"), (one, "the same environment")):
        again = await trial.reset(other, task, seed)
        same = again.screen_key() == first.screen_key() and again.actions == first.actions
        trial.expect("reset", same, f"{which} gave different screens for equal arguments of reset")


async def _repeats(trial: Trial, one: Environment, two: Environment, task: str, seed: int) -> None:
    """Check that the actions of a random walk give the same steps in another environment."""
    rng = random.Random(f"{task}/{seed}")
    screen = await trial.reset(one, task, seed)
    walk, steps = [], []
    for _ in range(WALK):
        open_ended = [a for a in choices(screen, ("x",)) if a.action_type != "status"]
        if not open_ended:
            break
        walk.append(rng.choice(open_ended))
        steps.append(await trial.step(one, walk[-1]))
        screen = steps[-1].observation
        if steps[-1].ended:
            break
    await trial.reset(two, task, seed)
    for number, (action, step) in enumerate(zip(walk, steps, strict=True), start=1):
        again = await trial.step(two, action)
        same = pictureless(again) == pictureless(step)
        if not trial.expect("determinism", same, f"step {number}, {action}, gave a different step"):
            return


async def _nonsense(trial: Trial, env: Environment, task: str, seed: int) -> None:
    for action in (NOWHERE, _TRIES["input_text"], _TRIES["long_press"]):
        before = await trial.reset(env, task, seed)
        step = await trial.step(env, action)
        trial.expect("lost-step", not step.terminated, f"{action} ends the episode")
        trial.expect("lost-step", bool(step.note), f"{action} gets no note")
        same = [e.label for e in step.observation.elements] == [e.label for e in before.elements]
        trial.expect("lost-step", same, f"{action} changes the screen")


async def _offers(trial: Trial, env: Environment, task: str, seed: int) -> None:
    """Check that no offered kind of action, without a target, raises an exception or is
    rewarded."""
    screen = await trial.reset(env, task, seed)
    for kind in screen.actions or ACTION_TYPES:
        if kind not in _TRIES:
            continue
        await trial.reset(env, task, seed)
        step = await trial.step(env, _TRIES[kind])
        if kind not in ("status", "answer"):
            trial.expect("actions", step.reward == 0, f"{_TRIES[kind]} at once is rewarded")


async def _runs_out(trial: Trial, env: Environment, task: str, seed: int, budget: int) -> None:
    await trial.reset(env, task, seed)
    step = await trial.step(env, NOWHERE)
    for _ in range(budget - 1):
        if step.ended:
            break
        step = await trial.step(env, NOWHERE)
    if trial.expect("ending", step.truncated, f"not truncated after {budget} lost steps at most"):
        await trial.refuses(env.step(BACK), EnvironmentFault, "idle", "a step after the end")


async def _restores(trial: Trial, env: Environment, task: str, seed: int) -> None:
    if not isinstance(env, Restorable):
        return
    start = await trial.reset(env, task, seed)
    with trial.guarded("snapshot"):
        state = env.snapshot()
    acts = [Action(action_type="click", index=0), BACK]
    first = await _until_end(trial, env, acts)
    for _ in range(2):
        with trial.guarded("restore"):
            back = env.restore(state)
        trial.screen(back)
        trial.expect("snapshot", back == start, "restore does not give the snapshot's screen")
        again = await _until_end(trial, env, acts)
        same = again == first
        trial.expect("snapshot", same, "after restore the same actions give different steps")
    # A snapshot in the middle of an episode, restored after its end.
    await trial.reset(env, task, seed)
    step = await trial.step(env, NOWHERE)
    if step.ended:
        return
    middle = step.observation
    with trial.guarded("snapshot and restore in an episode"):
        state = env.snapshot()
        await env.step(COMPLETE)
        back = env.restore(state)
    trial.expect("snapshot", back == middle, "restore after the end gives another screen")
    step = await trial.step(env, NOWHERE, done=2)
    trial.expect(
        "snapshot", not step.terminated, "an episode restored after its end is still ended"
    )


async def _until_end(trial: Trial, env: Environment, actions: list[Action]) -> list[Step]:
    steps: list[Step] = []
    for done, action in enumerate(actions, start=1):
        step = await trial.step(env, action, done=done)
        steps.append(pictureless(step))
        if step.ended:
            break
    return steps


async def _declares(trial: Trial, env: Environment, task: str, seed: int) -> None:
    """Check that declaring success at once is not rewarded, in a task where the expert would act
    first."""
    if not isinstance(env, Graded):
        return
    await trial.reset(env, task, seed)
    with trial.guarded("expert and grade"):
        if env.expert().action_type == "status":
            return
        graded = env.grade(COMPLETE)
    trial.expect("grade", graded == 0, "declaring success at once is graded right")
    step = await trial.step(env, COMPLETE)
    trial.expect("grade", step.reward == 0, "declaring success at once is rewarded")


async def _solves(trial: Trial, env: Environment, task: str, seed: int, budget: int) -> None:
    if not isinstance(env, Graded):
        return
    screen = await trial.reset(env, task, seed)
    for _ in range(budget):
        with trial.guarded("expert and grade"):
            action = env.expert()
            right, wrong, again = env.grade(action), env.grade(NOWHERE), env.expert()
        pointed = action.index is None or screen.element(action.index) is not None
        trial.expect("expert", pointed, f"{action} points at no element of the screen")
        trial.expect("grade", right == 1.0, f"the expert's {action} is graded {right}")
        trial.expect("grade", wrong == 0.0, f"a click on no element is graded {wrong}")
        trial.expect("grade", again == action, f"after grading the expert wants {again}")
        step = await trial.step(env, action)
        screen = step.observation
        if step.ended:
            trial.expect("expert", step.reward == 1.0, f"it ends with reward {step.reward}")
            return
    trial.find("expert", f"not done after {budget} actions")


async def closes(trial: Trial, env: Environment, task: str, seed: int) -> None:
    await trial.reset(env, task, seed)
    for _ in range(2):
        await closed(trial, env)
    await trial.refuses(env.step(BACK), EnvironmentFault, "close", "a step after close")


async def closed(trial: Trial, env: Environment) -> None:
    if not isinstance(env, Environment):
        return
    try:
        await env.close()
    except Exception as error:
        trial.expect("close", False, f"close raised {type(error).__name__}: {error}")
    else:
        trial.expect("close", True, "")
