"""What is wrong is found before anything is written, by a dry run too; no folder is left behind."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import LAMP, Shell

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment import Run

RIGHT = f"eval {LAMP} light --model script:right.txt"


def failing(error: SwarmError) -> Any:
    def evaluate(run: Run, **_: object) -> None:
        raise error

    return evaluate


def test_a_failed_start_leaves_no_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell(f"{RIGHT} --out kept").code == 0
    monkeypatch.setattr(
        "swarm_ui.cli.act.evaluate_run", failing(ConfigError("the weights do not fit"))
    )
    for more in ("", "--out r"):
        done = shell(f"{RIGHT} {more}")
        assert done.code == 2 and "the weights do not fit" in done.err
        assert not (shell.folder / "runs").exists() and not (shell.folder / "r").exists()
    (shell.folder / "runs" / "other").mkdir(parents=True)
    assert shell(RIGHT).code == 2
    assert [path.name for path in (shell.folder / "runs").iterdir()] == ["other"]
    assert shell("eval --resume kept --trust").code == 2
    assert (shell.folder / "kept/traces/episodes.jsonl").exists()


def test_what_was_written_is_kept(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(run: Run, **_: object) -> None:
        run.folder.write_episodes("episodes", [])
        raise ConfigError("late")

    monkeypatch.setattr("swarm_ui.cli.act.evaluate_run", evaluate)
    assert shell(f"{RIGHT} --out r").code == 2
    assert (shell.folder / "r/config.json").exists()
