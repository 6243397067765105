"""Environments, models, wrappers and loggers of the user, ``module:factory``: used, or told where
they are wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, Shell

from swarm_ui.environments.benchmark import Opened
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import wrapped
from swarm_ui.trace.jsonl import read_jsonl

SOURCE = '''\
import json
from cli_world import Lamp
from swarm_ui import Completion, transcript
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.prompts import as_chat

def raises(*_):
    raise ValueError("no key in the drawer")

def nothing(*_):
    return None

def needs(path, more, last):
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

class Quiet(Wrapper):
    """Does nothing."""

class Breaks(Wrapper):
    async def step(self, action):
        raise ValueError("the wrapper broke")

class Notes:
    """Writes what it receives into the folder of the run."""

    def __init__(self, folder, settings):
        self.path, self.settings = folder / "notes.jsonl", settings

    def keep(self, **values):
        with self.path.open("a") as file:
            file.write(json.dumps(values) + "\\n")

    def __call__(self, numbers):
        self.keep(settings=dict(self.settings), numbers=dict(numbers))

    def close(self):
        self.keep(closed=True)

class BadNotes:
    def __init__(self, folder, settings):
        """Keeps nothing."""

    def __call__(self, numbers):
        raise OSError("the server is gone")

lamp = Lamp()
'''
MODULES = {
    "here": SOURCE,
    "syntax": "x = 1\ndef make(:\n    pass\n",
    "top": "\n1 / 0\n",
    "import": "import no_such_package\n",
}
TRAIN = (
    "train phone --iterations 2 --rollouts 6 --agents 2 --rounds 1 --critic outcome "
    "train.shared_iterations=1 train.update.steps=2 train.rank=2"
)


@pytest.fixture
def code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in a folder with modules of the user."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in MODULES.items():
        monkeypatch.delitem(sys.modules, f"user_code_{name}", raising=False)
        (shell.folder / f"user_code_{name}.py").write_text(text, encoding="utf-8")
    for package in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, package, None)
    return shell


def notes(code: Shell, run: str) -> list[dict[str, Any]]:
    """What the user's logger wrote."""
    lines = (code.folder / run / "notes.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


FACTORIES = [
    ("user_code_syntax:make", "SyntaxError: invalid syntax (user_code_syntax.py:2)"),
    ("user_code_top:make", "ZeroDivisionError: division by zero (user_code_top.py:2)"),
    ("user_code_import:make", "No module named 'no_such_package' (user_code_import.py:1)"),
    ("user_code_none:make", "No module named 'user_code_none'; expected module:name"),
    ("user_code_here:none", "no attribute 'none'; expected module:name"),
    ("user_code_here:lamp", "is a Lamp; expected a callable"),
    ("user_code_here:raises", "ValueError: no key in the drawer (user_code_here.py:8)"),
    ("user_code_here:needs", "missing 3 required positional arguments"),
    ("user_code_here:later", "is an async function"),
    ("user_code_here:NotOne", "returns a NotOne, which is no"),
]
WRAPPERS = [
    ("action-filter:deny=pay", "got 'deny=pay'; expected action-filter:KEY=VALUE"),
    ("action-filtr", "did you mean 'action-filter'?"),
    ("user_code_here:needs", "missing 2 required positional arguments"),
    ("user_code_here:nothing", "returns a NoneType, which is no wrapper: it lacks name"),
]
LOGGERS = [
    ("tensorbord", "or module:name; did you mean 'tensorboard'?"),
    ("user_code_here:none", "has no attribute 'none'"),
    ("wandb", "needs the module 'wandb'"),
    ("mlflow", "pip install 'swarm-ui[mlflow]'"),
]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        *((("eval {0} -m script:right.txt", "play {0}", f"eval {LAMP} -m {{0}}"), each)
          for each in FACTORIES),
        *(((f"eval {LAMP} -m script:right.txt env.wrap={{0}}",), each) for each in WRAPPERS),
        *(((f"eval {LAMP} -m script:right.txt run.log={{0}}",), each) for each in LOGGERS),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_found_before_anything_is_written(
    code: Shell, lines: tuple[str, ...], said: tuple[str, str]
) -> None:
    place, told = said
    for line in (each.format(place) for each in lines):
        for more in ("", " --dry-run") if line.startswith("eval") else ("",):
            done = code(line + more)
            assert done.code == 2 and told in " ".join(done.err.split()), (line, done.err)
            assert "Traceback" not in done.err
    assert not (code.folder / "runs").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("BadStep", "the environment's 'step' failed: KeyError: 'missing' (user_code_here.py:21)"),
        ("BadReset", "'reset' failed: ValueError: invalid literal for int() with base 10: 'x' "
         "(user_code_here.py:25)"),
        ("NoStep", "'step' returned a NoneType, expected a Step"),
        ("BadTasks", "(user_code_here.py:34)"),
    ],
)  # fmt: skip
def test_an_environment_that_fails_is_a_fault_that_names_the_line(
    code: Shell, name: str, said: str
) -> None:
    done = code(f"eval user_code_here:{name} --model script:right.txt --out r")
    assert done.code == 3 and said in " ".join(done.err.split()), done.err
    assert "Traceback" not in done.err


def test_a_model_of_the_user_needs_no_close(code: Shell) -> None:
    done = code(f"eval {LAMP} light --model user_code_here:Patient --out r")
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


# -- wrappers ---------------------------------------------------------------------------------


def test_wrappers_apply_in_order_and_are_recorded(code: Shell) -> None:
    wraps = ["action-filter:deny=nothing", "user_code_here:Quiet"]
    line = (
        "eval phone contacts-add --model user_code_here:Patient env.max_steps=2 "
        f'env.wrap=["{wraps[0]}","{wraps[1]}"]'
    )
    done = code(f"{line} --out r --json")
    assert done.code == 1, done.err
    (episode,) = read_jsonl(code.folder / "r/traces/parameters.jsonl")
    assert len(episode.steps) == 2
    assert json.loads((code.folder / "r/config.json").read_text())["config"]["env"]["wrap"] == wraps
    assert wraps[0] in json.loads((code.folder / "r/results.json").read_text())["labels"][-1]
    plan = code(f"{line} --dry-run --json").json
    assert plan["environment"] == f"phone in {', '.join(wraps)}"


def test_a_resumed_run_keeps_its_wrappers(code: Shell) -> None:
    done = code(f"eval {LAMP} --model script:right.txt env.wrap=user_code_here:Breaks --out r")
    assert done.code == 3
    assert "ValueError: the wrapper broke (user_code_here.py:51)" in " ".join(done.err.split())
    again = code("eval --resume r --trust")
    assert again.code == 3 and "the wrapper broke" in again.err
    other = code("eval --resume r --trust env.wrap=action-filter")
    assert other.code == 2 and "env.wrap: cannot be changed" in " ".join(other.err.split())


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


# -- loggers ----------------------------------------------------------------------------------


def test_an_evaluation_logs_success_by_split_with_its_interval(code: Shell) -> None:
    done = code(
        "eval phone --split parameters --split apps -n 2 --model script:wrong.txt env.max_steps=1 "
        "run.log=['user_code_here:BadNotes','user_code_here:Notes'] --out e --json"
    )
    assert done.code == 0, done.err
    told = " ".join(done.err.split())
    assert told.count("the logger user_code_here:BadNotes failed: OSError: the server is gone") == 1
    logged, ended = notes(code, "e")
    assert logged["settings"]["env.name"] == "phone"
    assert logged["settings"]["eval.split"] == "parameters, apps"
    for split in ("parameters", "apps"):
        found = {
            name: logged["numbers"][f"success/{split}{name}"] for name in ("", "_low", "_high")
        }
        assert found[""] == 0.0 and found["_low"] == 0.0 < found["_high"] <= 1.0
        assert logged["numbers"][f"episodes/{split}"] == 2
    assert ended == {"closed": True}


@pytest.mark.slow
def test_training_is_logged_and_resumed_with_consent(code: Shell) -> None:
    pytest.importorskip("torch")
    done = code(f"{TRAIN} run.log=['user_code_here:Notes','tensorboard'] --out t --json")
    assert done.code == 0, done.err
    *steps, ended = notes(code, "t")
    settings = steps[0]["settings"]
    assert settings["train.iterations"] == 2 and settings["command"] == "train"
    assert [line["numbers"]["iteration"] for line in steps] == [0, 1] and ended == {"closed": True}
    rows = done.json["iterations"]
    assert [line["numbers"]["success"] for line in steps] == [row["success"] for row in rows]
    assert list((code.folder / "t/tensorboard").glob("events*"))
    refused = code("train --resume t")
    assert refused.code == 2
    assert "import and call 'user_code_here:Notes' (a logger)" in " ".join(refused.err.split())
    assert code("train --resume t run.log=tensorboard").code == 0, "loggers may be chosen anew"
