"""``--watch``: a live page about a run, served by a process of its own.

The server is not part of the process that plays or trains, so its work delays no step and its
failure stops nothing. It ends when its standard input is closed, also if this process is killed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from rich.text import Text

from swarm_ui.cli.output import Output
from swarm_ui.experiment.live.progress_file import record_progress
from swarm_ui.storage.run_directory import RunDirectory

UNTIL_INPUT_ENDS = "--until-input-ends"
"""The hidden option of ``swarm-ui watch`` for a server that another process controls."""
_LIBRARY = str(Path(__file__).resolve().parents[2])
_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from swarm_ui.__main__ import main; sys.exit(main())"
)
"""The server's program. Unlike ``python -m``, it imports nothing from the working directory."""
_PATIENCE = 5.0
"""Seconds until a server that does not end is killed."""


@contextmanager
def live_page(run: RunDirectory, output: Output, *, wanted: bool) -> Iterator[None]:
    """Record the progress of a run while the block works on it, and serve it if requested.

    The address is printed when the server is ready. If the server fails, a warning is printed.
    """
    record_progress(output.progress, run.path, output.warn)
    server = _started(run, output) if wanted else None
    try:
        yield
    finally:
        output.progress.listener = None
        if server is not None:
            _end(server)


class _Server(NamedTuple):
    process: subprocess.Popen[str]
    told: threading.Thread
    """The thread that prints the process's output."""
    ending: threading.Event
    """Set when the process is to end."""


def _started(run: RunDirectory, output: Output) -> _Server | None:
    words = ["watch", str(run.path), "--no-open", UNTIL_INPUT_ENDS]
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, _LIBRARY, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8", errors="replace", start_new_session=True,  # Ctrl-C is not for it
        )  # fmt: skip
    except OSError as error:
        output.warn(f"no live page: {error}; the run continues")
        return None
    ending = threading.Event()
    told = threading.Thread(target=_tell, args=(process, output, ending), daemon=True)
    told.start()
    return _Server(process, told, ending)


def _tell(process: subprocess.Popen[str], output: Output, ending: threading.Event) -> None:
    """Print the address that the server prints, and a warning if it ends by itself."""
    assert process.stdout is not None and process.stderr is not None
    said: list[str] = []
    errors = threading.Thread(target=_collect, args=(process.stderr, said), daemon=True)
    errors.start()
    with process.stdout, process.stderr:
        for line in process.stdout:
            output.log.print(Text(line.rstrip(), overflow="fold"), soft_wrap=True)
        errors.join()
    code = process.wait()
    if code and not ending.is_set():
        why = said[-1] if said else f"it ended with code {code}"
        output.warn(f"the live page has ended: {why}; the run continues")


def _collect(stream: IO[str], said: list[str]) -> None:
    said += [text for line in stream if (text := line.strip())]


def _end(server: _Server) -> None:
    process = server.process
    assert process.stdin is not None
    server.ending.set()
    with suppress(OSError):  # it has ended already
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    server.told.join(_PATIENCE)
