"""The environment contract as an executable check, for our worlds and for yours.

asyncio.run(check_environment(MyEnvironment, tasks=["buy-milk"]))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation

NOWHERE = Action(action_type="click", index=9_999)
BACK = Action(action_type="navigate_back")
COMPLETE = Action(action_type="status", goal_status="complete")


async def check_environment(
    make: Callable[[], Environment],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1),
    budget: int = 200,
) -> None:
    """Check that a world keeps the contract of :mod:`swarm_ui.environment`.

    Checks determinism of ``reset``, element indices, JSON round trips, that an action that makes
    no sense is a lost step, that steps outside an episode fault, and that an episode ends at its
    budget; of a :class:`Restorable` world that snapshots lead back exactly; of a :class:`Graded`
    one that its expert succeeds, that declaring success at once does not, and that grading
    changes nothing.

    Args:
        make: makes a fresh environment; called several times.
        tasks: which tasks to check; all of them by default.
        seeds: which seeds of each.
        budget: most steps an episode may last.

    Raises:
        AssertionError: the contract is broken; the message says where.
    """
    one, two = make(), make()
    try:
        _expect(isinstance(one, Environment), f"{type(one).__name__} is not an Environment")
        _expect(bool(one.name), "name is empty")
        chosen = tuple(tasks) if tasks is not None else tuple(one.tasks)
        _expect(bool(chosen), "tasks is empty")
        _expect(set(chosen) <= set(one.tasks), "tasks lacks a name that is to be checked")
        await _idle(one)
        for task in chosen:
            for seed in seeds:
                where = f"{one.name}, task {task!r}, seed {seed}"
                await _reset(one, two, task, seed, where)
                await _nonsense(one, task, seed, where)
                await _runs_out(one, task, seed, budget, where)
                if isinstance(one, Restorable):
                    await _restores(one, task, seed, where)
                if isinstance(one, Graded):
                    await _grades(one, task, seed, budget, where)
    finally:
        await one.close()
        await two.close()


def _expect(condition: bool, message: str) -> None:
    """``assert`` that is not stripped by ``python -O``."""
    if not condition:
        raise AssertionError(message)


async def _idle(env: Environment) -> None:
    """Before the first reset, and with a task that does not exist."""
    await _faults(env, f"{env.name}: step before the first reset")
    try:
        await env.reset(task="no such task", seed=0)
    except ConfigError:
        return
    raise AssertionError(f"{env.name}: reset of an unknown task must raise ConfigError")


async def _faults(env: Environment, where: str) -> None:
    try:
        await env.step(BACK)
    except EnvironmentFault:
        return
    raise AssertionError(f"{where} must raise EnvironmentFault")


def _screen(observation: Observation, where: str) -> None:
    """What must hold of every observation."""
    for position, element in enumerate(observation.elements):
        _expect(
            element.index == position,
            f"{where}: element at position {position} has index {element.index}",
        )
    _expect(bool(observation.goal), f"{where}: the goal is empty")
    back = msgspec.json.decode(msgspec.json.encode(observation), type=Observation)
    _expect(back == observation, f"{where}: the observation changes in a JSON round trip")


def _step(step: Step, done: int, where: str) -> None:
    """What must hold of every step."""
    _screen(step.observation, where)
    _expect(math.isfinite(step.reward), f"{where}: reward is {step.reward}")
    _expect(step.ended or step.reward == 0, f"{where}: reward {step.reward} before the end")
    _expect(not (step.terminated and step.truncated), f"{where}: both terminated and truncated")
    _expect(
        len(step.observation.history) == done,
        f"{where}: history has {len(step.observation.history)} actions after {done}",
    )


async def _reset(one: Environment, two: Environment, task: str, seed: int, where: str) -> None:
    first = await one.reset(task=task, seed=seed)
    _screen(first, where)
    _expect(not first.history, f"{where}: history is not empty after reset")
    for other in (two, one):
        again = await other.reset(task=task, seed=seed)
        _expect(
            again.screen_key() == first.screen_key(),
            f"{where}: equal arguments of reset gave different screens",
        )


async def _nonsense(env: Environment, task: str, seed: int, where: str) -> None:
    before = await env.reset(task=task, seed=seed)
    step = await env.step(NOWHERE)
    _step(step, 1, where)
    _expect(step.fault is None, f"{where}: a click on no element is not a fault: {step.fault}")
    _expect(not step.terminated, f"{where}: a click on no element ends the episode")
    _expect(bool(step.note), f"{where}: a click on no element gets no note")
    _expect(
        [e.label for e in step.observation.elements] == [e.label for e in before.elements],
        f"{where}: a click on no element changes the screen",
    )


async def _runs_out(env: Environment, task: str, seed: int, budget: int, where: str) -> None:
    await env.reset(task=task, seed=seed)
    for done in range(1, budget + 1):
        step = await env.step(NOWHERE)
        _step(step, done, where)
        if step.ended:
            break
    _expect(step.truncated, f"{where}: not truncated after {done} lost steps")
    _expect(step.reward == 0, f"{where}: reward {step.reward} for doing nothing")
    await _faults(env, f"{where}: step after the end")


async def _restores(env: Environment, task: str, seed: int, where: str) -> None:
    if not isinstance(env, Restorable):
        return
    start = await env.reset(task=task, seed=seed)
    state = env.snapshot()
    actions = [Action(action_type="click", index=0), BACK]
    first = [await env.step(action) for action in actions]
    for _ in range(2):
        _expect(
            env.restore(state) == start, f"{where}: restore does not give the snapshot's screen"
        )
        again = [await env.step(action) for action in actions]
        _expect(again == first, f"{where}: after restore the same actions lead elsewhere")


async def _grades(env: Environment, task: str, seed: int, budget: int, where: str) -> None:
    if not isinstance(env, Graded):
        return
    await env.reset(task=task, seed=seed)
    if env.expert().action_type != "status":
        _expect(env.grade(COMPLETE) == 0, f"{where}: declaring success at once is graded right")
        step = await env.step(COMPLETE)
        _expect(step.reward == 0, f"{where}: declaring success at once is rewarded")
        await env.reset(task=task, seed=seed)
    for _ in range(budget):
        action = env.expert()
        _expect(env.grade(action) == 1.0, f"{where}: the expert's {action} is graded wrong")
        _expect(env.grade(NOWHERE) == 0.0, f"{where}: a click on no element is graded right")
        _expect(env.expert() == action, f"{where}: grading changed the state")
        step = await env.step(action)
        if step.ended:
            break
    _expect(step.reward == 1.0, f"{where}: the expert ends with reward {step.reward}")
