"""Environments and models of the user, ``module:factory``: what is wrong with them, and where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import Shell

SOURCE = '''\
from cli_world import Lamp
from swarm_ui import Completion, transcript
from swarm_ui.errors import EnvironmentFault
from swarm_ui.prompts import as_chat

def raises():
    raise ValueError("no key in the drawer")

def needs(path):
    return Lamp()

async def later():
    return Lamp()

class BadStep(Lamp):
    async def step(self, action):
        return {}["missing"]

class BadReset(Lamp):
    async def reset(self, *, task, seed):
        int("x")

class NoStep(Lamp):
    async def step(self, action):
        return None

class BadTasks(Lamp):
    @property
    def tasks(self):
        return [][0]

class NotOne:
    name = "x"

class Patient:
    """The model of docs/models.md."""
    name = "patient"
    async def generate(self, requests):
        reply = '{"action_type": "wait"}'
        return [Completion(text=reply, prompt=transcript(as_chat(r))) for r in requests]

lamp = Lamp()
'''


@pytest.fixture
def code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in a folder with modules of the user."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("user_code_here", "user_code_syntax", "user_code_top", "user_code_import"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, text in (
        ("here", SOURCE),
        ("syntax", "x = 1\ndef make(:\n    pass\n"),
        ("top", "\n1 / 0\n"),
        ("import", "import no_such_package\n"),
    ):
        (shell.folder / f"user_code_{name}.py").write_text(text, encoding="utf-8")
    return shell


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("user_code_syntax:make", "SyntaxError: invalid syntax (user_code_syntax.py:2)"),
        ("user_code_top:make", "ZeroDivisionError: division by zero (user_code_top.py:2)"),
        ("user_code_import:make", "No module named 'no_such_package' (user_code_import.py:1)"),
        ("user_code_none:make", "No module named 'user_code_none'; expected module:name"),
        ("user_code_here:nothing", "no attribute 'nothing'; expected module:name"),
        ("user_code_here:lamp", "is a Lamp; expected a callable"),
        ("user_code_here:raises", "ValueError: no key in the drawer (user_code_here.py:7)"),
        ("user_code_here:needs", "missing 1 required positional argument: 'path'"),
        ("user_code_here:later", "is an async function"),
        ("user_code_here:NotOne", "returns a NotOne, which is no"),
    ],
)  # fmt: skip
def test_a_factory_that_cannot_be_used_is_wrong_usage(code: Shell, place: str, said: str) -> None:
    for line in (
        f"eval {place} --model script:right.txt",
        f"eval {place} light --model script:right.txt --dry-run",
        f"play {place}",
        f"eval cli_world:Lamp --model {place}",
        f"eval cli_world:Lamp --model {place} --dry-run",
    ):
        done = code(line)
        assert done.code == 2 and said in " ".join(done.err.split()), (line, done.err)
        assert "Traceback" not in done.err
    assert not (code.folder / "runs").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("BadStep", "the environment's 'step' failed: KeyError: 'missing' (user_code_here.py:17)"),
        ("BadReset", "'reset' failed: ValueError: invalid literal for int() with base 10: 'x' "
         "(user_code_here.py:21)"),
        ("NoStep", "'step' returned a NoneType, expected a Step"),
    ],
)  # fmt: skip
def test_an_environment_that_fails_is_a_fault_that_names_the_line(
    code: Shell, name: str, said: str
) -> None:
    done = code(f"eval user_code_here:{name} --model script:right.txt --out r")
    assert done.code == 3 and said in " ".join(done.err.split()), done.err
    assert "Traceback" not in done.err


def test_tasks_that_cannot_be_listed_are_a_fault(code: Shell) -> None:
    for line in (
        "play user_code_here:BadTasks",
        "eval user_code_here:BadTasks -m script:right.txt",
    ):
        done = code(line)
        assert done.code == 3 and "(user_code_here.py:30)" in done.err, done.err
    assert not (code.folder / "runs").exists()


def test_a_model_of_the_user_needs_no_close(code: Shell) -> None:
    done = code("eval cli_world:Lamp light --model user_code_here:Patient --out r")
    assert done.code == 1, done.err
    again = code("replay r --again --trust --json")
    assert again.code == 0 and again.json["asked"] == 1


def test_play_looks_in_the_current_folder(code: Shell) -> None:
    lamp = (Path(__file__).parents[1] / "support/cli_world.py").read_text(encoding="utf-8")
    (code.folder / "user_code_lamp.py").write_text(lamp, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "swarm_ui", "play", "user_code_lamp:Lamp"],
        cwd=code.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["light", "glow"], done.stderr
