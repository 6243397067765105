"""The command line as it is typed: what there is, and what is wrong usage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from cli_world import Shell, commands

from swarm_ui.cli import exits
from swarm_ui.errors import (
    BudgetExceeded,
    ConfigError,
    EnvironmentFault,
    Failure,
    FailureKind,
    LearningError,
    ModelError,
    ModelUnavailable,
    NodeError,
    SwarmError,
    TraceError,
)

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("eval", "compare", "play", "train", "synthesize", "finetune", "critic", "view", "runs",
            "replay", "export", "doctor", "config")  # fmt: skip


def test_without_a_command_it_says_what_there_is(shell: Shell) -> None:
    done = shell("")
    assert done.code == 0
    assert [name for name in COMMANDS if f" {name} " not in done.out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(shell: Shell, command: str) -> None:
    done = shell(f"{command} --help")
    assert done.code == 0 and f"Usage: swarm-ui {command}" in done.out
    assert "Example: swarm-ui" in done.out


def test_every_command_has_a_section_with_its_options_and_an_example() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    for name in {command.partition(" ")[0] for command in commands()}:
        assert f"\n## {name}\n" in page and f"\n<!-- options {name} -->\n" in page
        assert f"\n$ swarm-ui {name} " in page or f"\n$ swarm-ui {name}\n" in page, name


def test_a_mistake_is_one_json_object_too(shell: Shell) -> None:
    done = shell("eval fridge --json")
    assert done.code == done.json["exit"] == 2
    assert done.json["ok"] is False and "no environment 'fridge'" in done.json["message"]


def test_a_bug_shows_its_traceback(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm_ui.cli import doctor

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by nobody")

    monkeypatch.setattr(doctor, "checks", broken)
    done = shell("doctor --json")
    assert done.code == done.json["exit"] == 70
    assert "Traceback" in done.err and "by nobody" in done.err


def test_the_core_does_not_need_typer() -> None:
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "import swarm_ui, swarm_ui.__main__, swarm_ui.nodes, swarm_ui.report\n"
        "assert not [m for m in sys.modules if m.startswith('swarm_ui.cli')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EnvironmentFault("gone"), 3),
        (ModelError("refused"), 4),
        (ModelUnavailable("503"), 4),
        (BudgetExceeded("8 calls"), 4),
        (NodeError("no", node="a", round=0, run="r"), 4),
        (LearningError("nan"), 5),
        (ConfigError("wrong"), 2),
        (TraceError("damaged"), 2),
    ],
)
def test_an_error_and_the_fault_that_records_it_end_a_command_with_one_code(
    error: SwarmError, code: int
) -> None:
    failure = Failure.of(error)
    assert exits.code_of(error) == exits.code_of(failure) == code and code in exits.MEANINGS
    assert set(get_args(FailureKind)) == set(exits._CODES)
