"""Runs that a crash, a full disk or a hand left in an odd state, and files in odd places."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import LAMP, Shell

from swarm_ui.trace.jsonl import read_jsonl

ROOT = Path(__file__).resolve().parents[2]


def played(shell: Shell, folder: str = "r", count: int = 3) -> Path:
    """A run of some episodes."""
    done = shell(f"eval {LAMP} -n {count} -j 1 --model script:mixed.txt --fail-under 0", "--out",
                 folder)  # fmt: skip
    assert done.code == 0, done.err
    return shell.folder / folder


def child(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    program = "import sys; from swarm_ui.__main__ import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **dict(options.pop("env", {}))}  # type: ignore[call-overload]
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *words], text=True, env=environment, timeout=150,
        check=False, **options,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "eval --resume r --trust --dry-run",
        "export r episodes",
        "replay r",
        "view r --no-open --out page.html",
    ],
)
def test_what_only_reads_a_run_makes_no_folders_in_it(shell: Shell, command: str) -> None:
    run = played(shell)
    before = set(run.rglob("*"))
    done = shell(command)
    assert done.code == 0, done.err
    assert set(run.rglob("*")) == before


def test_a_run_without_its_empty_folders_can_be_continued(shell: Shell) -> None:
    run = played(shell)
    (run / "traces/episodes.jsonl").unlink()
    (run / "traces").rmdir()
    done = shell("eval --resume r --trust --fail-under 0")
    assert done.code == 0, done.err
    assert len(read_jsonl(run / "traces/episodes.jsonl")) == 3


def test_outcomes_that_do_not_fit_their_episodes_are_damage(shell: Shell) -> None:
    run = played(shell)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    results["arms"][0]["outcomes"].pop()
    (run / "results.json").write_text(json.dumps(results), encoding="utf-8")
    said = "arm 'episodes' has 3 episodes and 2 outcomes"
    told = shell("runs r")
    assert told.code == 0 and "3 episodes" in told.out
    assert said in " ".join(told.out.split())
    refused = shell("compare r r")
    assert refused.code == 2 and said in refused.err and "Traceback" not in refused.err
    assert shell("view r --no-open").code == 0
    assert "has 3 episodes and 2 outcomes" in (run / "report.html").read_text(encoding="utf-8")


def test_a_record_that_is_cut_off_is_left_out_of_a_run(shell: Shell) -> None:
    """As a run leaves it that was killed while it wrote, or that still writes."""
    run = played(shell)
    file = run / "traces/episodes.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    assert shell("export r episodes").out.count("\n") == 2
    assert "has 2 episodes" in shell("replay r --trust -e 3").err
    alone = shell("replay r/traces/episodes.jsonl --trust -e 3")
    assert alone.code == 2 and "cut off" in alone.err, "a file of its own should be whole"


def test_commands_to_copy_are_quoted_and_on_one_line(shell: Shell) -> None:
    name = "runs of ä/" + "a long name " * 9 + "x"
    done = shell(f"eval {LAMP} -n 2 --model script:wrong.txt --fail-under 0", "--out", name)
    (line,) = [line for line in done.err.splitlines() if line.startswith("next: ")]
    assert shlex.split(line.removeprefix("next: ")) == ["swarm-ui", "view", name]
    written = shell("config", "a file.toml")
    (line,) = [line for line in written.err.splitlines() if line.startswith("next: ")]
    assert shlex.split(line)[-3:] == ["--config", "a file.toml", "--dry-run"]


def test_no_stream_of_the_terminal_ends_a_command(shell: Shell) -> None:
    played(shell)
    plain = child("runs", ".", capture_output=True, env={"PYTHONIOENCODING": "ascii"})
    assert plain.returncode == 0 and "episodes of each" not in plain.stderr
    document = child("runs", "r", "--json", capture_output=True,
                     env={"PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert json.loads(document.stdout)["path"] == "r"
    closed = child("runs", ".", stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert closed.returncode == 0 and not closed.stderr


def test_a_reader_that_leaves_is_no_error(shell: Shell) -> None:
    played(shell)
    reading, writing = os.pipe()
    os.close(reading)
    done = child("runs", "r", stdout=writing, stderr=subprocess.PIPE)
    assert done.returncode == 0 and not done.stderr
    # A run goes on, although nobody reads its notes.
    line = f"eval {LAMP} -n 2 --model script:right.txt --out left"
    again = child(*line.split(), stdout=subprocess.PIPE, stderr=writing,
                  env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}"})  # fmt: skip
    os.close(writing)
    assert again.returncode == 0 and "2/2" in again.stdout
    assert (shell.folder / "left/report.html").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_the_output_is_one_line(shell: Shell) -> None:
    played(shell)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = child("runs", "r", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2 and "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
