"""``--watch`` and ``watch``: the page is served, ends cleanly, and never stops a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from cli_world import LAMP, SLOW, Shell, shell  # noqa: F401
from interrupts import hear_ctrl_c

from swarm_ui.cli import live_page
from swarm_ui.cli.output import Output
from swarm_ui.storage.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_run_goes_on_if_its_page_cannot_be_served(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_page, "_PROGRAM", "import sys; sys.exit('no page today')")
    monkeypatch.setenv("LAMP_SECONDS", "2")
    done = shell(f"run {SLOW} light --model script:right.txt --watch --out r --json")
    assert done.code == 0 and done.json["success"]["mean"] == 1.0
    assert "the live page has ended: no page today; the run continues" in " ".join(done.err.split())
    monkeypatch.setattr(sys, "executable", str(shell.folder / "no-python"))
    done = shell(f"run {LAMP} light --model script:right.txt --watch --out s")
    assert done.code == 0 and "no live page" in done.err


@pytest.mark.slow
def test_the_address_is_printed_and_the_server_ends_with_the_run(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stand-in for the server, which is tested below, because it takes a second to start."""
    said = "import sys; print('live page: http://127.0.0.1:1/x/', flush=True); sys.stdin.read()"
    monkeypatch.setattr(live_page, "_PROGRAM", said)
    monkeypatch.setenv("LAMP_SECONDS", "2")
    done = shell(f"eval {SLOW} --task light -n 1 --model script:right.txt --watch --json --quiet")
    assert done.code == 0 and "live page: http://127.0.0.1:1/x/" in done.err
    assert "has ended" not in done.err and done.json["ok"]


def test_progress_is_recorded_without_a_page(shell: Shell) -> None:  # noqa: F811
    assert shell(f"run {LAMP} -n 4 --model script:right.txt --out r").code == 0
    assert (shell.folder / "r/progress.json").is_file()
    shell(f"run {LAMP} -n 4 --model script:right.txt --out dry --watch --dry-run")
    assert not (shell.folder / "dry").exists()


def test_watch_refuses_what_is_no_run(shell: Shell) -> None:  # noqa: F811
    assert shell("watch nothing --no-open").code == 2
    (shell.folder / "empty").mkdir()
    done = shell("watch empty --no-open")
    assert done.code == 2 and "not a run" in done.err


@pytest.mark.parametrize(
    "ending", ["ctrl-c", pytest.param("the parent ends", marks=pytest.mark.slow)]
)
def test_watch_serves_until_it_is_ended(shell: Shell, ending: str) -> None:  # noqa: F811
    assert shell(f"run {LAMP} light --model script:right.txt --out r").code == 0
    more = [] if ending == "ctrl-c" else [live_page.UNTIL_INPUT_ENDS]
    server = subprocess.Popen(
        [sys.executable, "-m", "swarm_ui", "watch", "r", "--no-open", *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    try:
        assert server.stdout is not None and server.stdin is not None
        line = server.stdout.readline()
        assert line.startswith("live page: http://127.0.0.1:")
        with urlopen(line.removeprefix("live page: ").strip() + "state") as answer:
            assert "light" in answer.read().decode()
        if ending == "ctrl-c":
            server.send_signal(signal.SIGINT)
        else:
            server.stdin.close()
            server.stdin = None
        _, errors = server.communicate(timeout=60)
        assert server.returncode == 0 and "Traceback" not in errors, errors
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_the_real_server_starts_beside_a_run(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "r", config={"command": "train"})
    output, told = Output(), list[str]()
    output.log.print = lambda text, **_: told.append(str(text))  # type: ignore[method-assign]
    with live_page.live_page(run, output, wanted=True):
        until = time.monotonic() + 60
        while not told and time.monotonic() < until:
            time.sleep(0.1)
        with urlopen(told[0].removeprefix("live page: ") + "state") as answer:
            assert answer.status == 200
    assert len(told) == 1, told
