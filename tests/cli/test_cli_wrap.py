"""``--wrap``: wrappers of environments by name, in order, recorded, and kept by a resume."""

from __future__ import annotations

import json
import sys

import pytest
from cli_world import LAMP, Shell

from swarm_ui.environments.benchmark import Opened
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import wrapped
from swarm_ui.trace.jsonl import read_jsonl

SOURCE = '''\
from swarm_ui.environments.wrappers import Wrapper

class Quiet(Wrapper):
    """Does nothing."""

class Breaks(Wrapper):
    async def step(self, action):
        raise ValueError("the wrapper broke")

def fails(env):
    raise RuntimeError("no wrapping paper")

def nothing(env):
    return None

def two(env, more):
    return env
'''
WAIT = "Action: " + '{"action_type": "wait"}'


@pytest.fixture
def code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "user_wrappers", raising=False)
    (shell.folder / "user_wrappers.py").write_text(SOURCE, encoding="utf-8")
    (shell.folder / "wait.txt").write_text(WAIT + "\n", encoding="utf-8")
    return shell


def test_wrappers_apply_in_order_and_are_recorded(code: Shell) -> None:
    line = (
        "eval phone contacts-add --model script:wait.txt env.max_steps=2 "
        'env.wrap=["action-filter:deny=nothing","user_wrappers:Quiet"]'
    )
    done = code(f"{line} --out r --json")
    assert done.code == 1, done.err
    (episode,) = read_jsonl(code.folder / "r/traces/parameters.jsonl")
    assert len(episode.steps) == 2
    wraps = ["action-filter:deny=nothing", "user_wrappers:Quiet"]
    assert json.loads((code.folder / "r/config.json").read_text())["config"]["env"]["wrap"] == wraps
    told = json.loads((code.folder / "r/results.json").read_text())["labels"]
    assert wraps[0] in told[-1]
    plan = code(f"{line} --dry-run --json").json
    assert plan["environment"] == f"phone in {', '.join(wraps)}"


def test_a_resumed_run_keeps_its_wrappers(code: Shell) -> None:
    done = code(f"eval {LAMP} --model script:right.txt env.wrap=user_wrappers:Breaks --out r")
    assert done.code == 3
    assert "ValueError: the wrapper broke (user_wrappers.py:8)" in " ".join(done.err.split())
    again = code("eval --resume r --trust")
    assert again.code == 3 and "the wrapper broke" in again.err
    other = code("eval --resume r --trust env.wrap=action-filter")
    assert other.code == 2 and "env.wrap: cannot be changed" in " ".join(other.err.split())


@pytest.mark.parametrize(
    ("wrap", "said"),
    [
        ("action-filter:deny=pay", "got 'deny=pay'; expected action-filter:KEY=VALUE"),
        ("action-filter:app=x", "got 'app=x'"),
        ("action-filtr", "did you mean 'action-filter'?"),
        ("user_wrappers:none", "has no attribute 'none'"),
        ("user_wrappers:two", "missing 1 required positional argument: 'more'"),
        ("user_wrappers:fails", "RuntimeError: no wrapping paper (user_wrappers.py:11)"),
        ("user_wrappers:nothing", "returns a NoneType, which is no wrapper: it lacks name"),
        ("no_such_module:make", "No module named 'no_such_module'"),
    ],
)
def test_a_wrong_wrapper_is_found_before_anything_is_written(
    code: Shell, wrap: str, said: str
) -> None:
    for more in ("", "--dry-run"):
        done = code(f"eval {LAMP} --model script:right.txt env.wrap={wrap} {more}")
        assert done.code == 2 and said in " ".join(done.err.split()), done.err
        assert "Traceback" not in done.err
    assert not (code.folder / "runs").exists()


async def test_the_inner_environment_is_closed_if_a_wrapper_cannot_be_made() -> None:
    closed = []

    class Phone(PhoneEnvironment):
        async def close(self) -> None:
            closed.append(True)
            await super().close()

    opened = Opened(wrapped(Phone, ["user_wrappers_none:make"]))
    with pytest.raises(ConfigError, match="cannot be used"):
        async with opened.one():
            pass
    assert closed == [True]
