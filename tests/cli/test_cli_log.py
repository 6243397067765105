"""``--log``: metrics of training and evaluation go to loggers, which may fail."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from cli_world import LAMP, Shell

SOURCE = '''\
import json

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

class Breaks(Notes):
    def __call__(self, numbers):
        raise OSError("the server is gone")

def nothing(folder, settings):
    return None
'''
SMALL = (
    "train phone --iterations 2 --rollouts 6 --agents 2 --rounds 1 --critic outcome "
    "train.shared_iterations=1 train.update.steps=2 "
    "train.rank=2"
)


@pytest.fixture
def code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "user_loggers", raising=False)
    (shell.folder / "user_loggers.py").write_text(SOURCE, encoding="utf-8")
    return shell


def notes(code: Shell, run: str) -> list[dict[str, Any]]:
    lines = (code.folder / run / "notes.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_evaluation_logs_success_by_split_with_its_interval(code: Shell) -> None:
    done = code(
        "eval phone --split parameters --split apps -n 2 --model script:wrong.txt env.max_steps=1 "
        "run.log=user_loggers:Notes --out e --json"
    )
    assert done.code == 0, done.err
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
    done = code(
        f"{SMALL} env.wrap=action-filter run.log=['user_loggers:Notes','tensorboard'] "
        "--out t --json"
    )
    assert done.code == 0, done.err
    *steps, ended = notes(code, "t")
    settings = steps[0]["settings"]
    assert settings["train.iterations"] == 2 and settings["command"] == "train"
    assert settings["env.wrap"] == "action-filter"
    assert [line["numbers"]["iteration"] for line in steps] == [0, 1] and ended == {"closed": True}
    rows = done.json["iterations"]
    assert [line["numbers"]["success"] for line in steps] == [row["success"] for row in rows]
    assert list((code.folder / "t/tensorboard").glob("events*"))
    assert "next: swarm-ui eval t --trust" in done.err, "the folder has the wrappers"
    refused = code("train --resume t")
    assert refused.code == 2
    assert "import and call 'user_loggers:Notes' (a logger)" in " ".join(refused.err.split())
    assert code("train --resume t run.log=tensorboard").code == 0, "loggers may be chosen anew"


def test_a_logger_that_fails_ends_nothing(code: Shell) -> None:
    line = f"eval {LAMP} -n 2 --model script:right.txt"
    done = code(f"{line} run.log=['user_loggers:Breaks','user_loggers:Notes'] --out e")
    told = " ".join(done.err.split())
    assert done.code == 0, done.err
    assert told.count("the logger user_loggers:Breaks failed: OSError: the server is gone") == 1
    assert notes(code, "e")[-1] == {"closed": True}


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("tensorbord", "no logger 'tensorbord': expected tensorboard, wandb, mlflow, or "
         "module:name; did you mean 'tensorboard'?"),
        ("user_loggers:none", "has no attribute 'none'"),
        ("wandb", "needs the module 'wandb'"),
        ("mlflow", "pip install 'swarm-ui[mlflow]'"),
    ],
)  # fmt: skip
def test_a_wrong_logger_is_found_before_anything_is_written(
    code: Shell, log: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, package, None)
    for more in ("", "--dry-run"):
        done = code(f"eval {LAMP} -n 2 --model script:right.txt run.log={log} {more}")
        assert done.code == 2 and said in " ".join(done.err.split()), done.err
    assert not (code.folder / "runs").exists()
