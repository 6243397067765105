"""Wrappers around an environment, alone and nested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_world import FIELD, SAVE, Bare, Faulty, Notebook

from swarm_ui import read_jsonl
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable
from swarm_ui.environments import check_environment
from swarm_ui.environments.wrappers import (
    ActionFilter,
    Confirm,
    Question,
    Recorder,
    Wrapper,
)
from swarm_ui.errors import ConfigError, EnvironmentFault, TraceError
from swarm_ui.trace.records import Episode

TYPE = Action(action_type="input_text", index=FIELD, text="milk")
PRESS = Action(action_type="click", index=SAVE)
WAIT = Action(action_type="wait")


async def yes(question: Question) -> bool:
    return True


WRAPPERS: dict[str, Callable[[Environment, Path], Environment]] = {
    "plain": lambda env, path: Wrapper(env),
    "recorder": lambda env, path: Recorder(env, path / "episodes.jsonl"),
    "filter": lambda env, path: ActionFilter(env),
    "confirm": lambda env, path: Confirm(env, yes, rules=None),
    "all": lambda env, path: Recorder(Confirm(ActionFilter(env), yes), path / "episodes.jsonl"),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("world", [Notebook, Bare])
async def test_a_wrapped_world_is_what_the_world_is_and_keeps_the_contract(
    wrap: Callable[[Environment, Path], Environment],
    world: type[Notebook | Bare],
    tmp_path: Path,
) -> None:
    inner = world()
    restorable, graded = isinstance(inner, Restorable), isinstance(inner, Graded)
    env = wrap(inner, tmp_path)
    assert isinstance(env, Wrapper) and env.innermost is inner
    assert (env.name, env.tasks) == (inner.name, inner.tasks)
    assert (isinstance(env, Restorable), isinstance(env, Graded)) == (restorable, graded)
    await env.close()
    assert (inner if isinstance(inner, Notebook) else inner.inner).closed == 1
    report = check_environment(lambda: wrap(world(), tmp_path), tasks=("write",))
    assert ("snapshot" in report.checked, "grade" in report.checked) == (restorable, graded)


# -- recordings -------------------------------------------------------------------------------


def recorder(path: Path, env: Environment | None = None) -> Recorder:
    return Recorder(env or Notebook(), path / "e.jsonl", actor="ada")


async def test_an_episode_is_on_disk_when_its_last_step_returns(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    screen = await env.reset(task="write", seed=3)
    await env.step(TYPE)
    assert (tmp_path / "e.jsonl").read_bytes() == b""
    await env.step(PRESS)
    (episode,) = read_jsonl(tmp_path / "e.jsonl")
    assert episode == env.last
    assert (episode.environment, episode.task, episode.seed) == ("notebook", "write", 3)
    assert (episode.policy, episode.success, episode.fault) == ("ada", True, None)
    assert [s.executed for s in episode.steps] == [TYPE, PRESS]
    assert [s.trace.action for s in episode.steps] == [TYPE, PRESS]
    assert episode.steps[0].trace.observation == screen
    assert [len(s.trace.observation.history) for s in episode.steps] == [0, 1]
    assert [m.content for m in episode.steps[0].trace.messages] == [TYPE.json()]
    assert [m.action for m in episode.steps[0].trace.messages] == [TYPE]
    assert len({s.trace.run for s in episode.steps} | {s.trace.seed for s in episode.steps}) == 4
    await env.close()
    assert len(read_jsonl(tmp_path / "e.jsonl")) == 1


async def test_unsolved_and_left_episodes_are_told_apart(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    await env.reset(task="write", seed=3)
    await env.step(PRESS)
    await env.reset(task="write", seed=4)
    await env.step(WAIT)
    await env.reset(task="write", seed=5)  # nothing was done in this one: nothing is written
    await env.reset(task="write", seed=6)
    await env.step(WAIT)
    await env.close()
    found = [
        (e.seed, e.success, e.fault and str(e.fault)) for e in read_jsonl(tmp_path / "e.jsonl")
    ]
    assert found == [
        (3, False, None),
        (4, None, "left before its end: reset"),
        (6, None, "left before its end: close"),
    ]


@pytest.mark.parametrize("tell", [False, True])
async def test_a_fault_is_recorded_and_goes_on(tmp_path: Path, tell: bool) -> None:
    env = recorder(tmp_path, Faulty(Notebook(), step=1, reset=1, tell=tell))
    await env.reset(task="write", seed=3)
    await env.step(TYPE)
    if not tell:
        with pytest.raises(EnvironmentFault):
            await env.step(PRESS)
    else:
        assert (await env.step(PRESS)).fault
    with pytest.raises(EnvironmentFault):
        await env.reset(task="write", seed=4)
    with pytest.raises(ConfigError):
        await env.reset(task="nothing", seed=4)
    await env.close()
    episodes = read_jsonl(tmp_path / "e.jsonl")
    assert [(e.seed, e.success, len(e.steps)) for e in episodes] == [(3, None, 2), (4, None, 0)]
    assert [str(e.fault) for e in episodes] == [
        "notebook: injected fault in step",
        "notebook: injected fault in reset",
    ]


async def test_an_episode_taken_up_again_is_another_record(tmp_path: Path) -> None:
    env = recorder(tmp_path)
    assert isinstance(env, Restorable)
    await env.reset(task="write", seed=3)
    await env.step(TYPE)
    aside = env.snapshot()
    await env.step(PRESS)
    env.restore(aside)
    await env.step(WAIT)
    await env.step(PRESS)
    first, second = read_jsonl(tmp_path / "e.jsonl")
    assert [s.executed for s in first.steps] == [TYPE, PRESS]
    assert [s.executed for s in second.steps] == [TYPE, WAIT, PRESS]
    assert isinstance(second, Episode) and second.success


async def test_recordings_are_added_to_a_file_and_a_torn_line_goes(tmp_path: Path) -> None:
    for seed in (3, 4):
        env = recorder(tmp_path)
        await env.reset(task="write", seed=seed)
        await env.step(PRESS)
    assert [e.seed for e in read_jsonl(tmp_path / "e.jsonl")] == [3, 4]
    with (tmp_path / "e.jsonl").open("ab") as file:
        file.write(b'{"version": 1, "epi')
    recorder(tmp_path)
    assert [e.seed for e in read_jsonl(tmp_path / "e.jsonl")] == [3, 4]
    with pytest.raises(ConfigError):
        recorder(tmp_path / "nowhere")
    with pytest.raises(TraceError):
        Recorder(Notebook(), tmp_path)
