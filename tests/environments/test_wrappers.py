"""Wrappers around an environment, alone and nested."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_world import Bare, Notebook

from swarm_ui.environment import Environment, Graded, Restorable
from swarm_ui.environments import check_environment
from swarm_ui.environments.wrappers import (
    ActionFilter,
    Confirm,
    Question,
    Wrapper,
)


async def yes(question: Question) -> bool:
    return True


WRAPPERS: dict[str, Callable[[Environment], Environment]] = {
    "plain": Wrapper,
    "filter": ActionFilter,
    "confirm": lambda env: Confirm(env, yes, rules=None),
    "all": lambda env: Confirm(ActionFilter(env), yes),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("world", [Notebook, Bare])
async def test_a_wrapped_world_is_what_the_world_is_and_keeps_the_contract(
    wrap: Callable[[Environment], Environment],
    world: type[Notebook | Bare],
) -> None:
    inner = world()
    restorable, graded = isinstance(inner, Restorable), isinstance(inner, Graded)
    env = wrap(inner)
    assert isinstance(env, Wrapper) and env.innermost is inner
    assert (env.name, env.tasks) == (inner.name, inner.tasks)
    assert (isinstance(env, Restorable), isinstance(env, Graded)) == (restorable, graded)
    await env.close()
    assert (inner if isinstance(inner, Notebook) else inner.inner).closed == 1
    report = check_environment(lambda: wrap(world()), tasks=("write",))
    assert ("snapshot" in report.checked, "grade" in report.checked) == (restorable, graded)
