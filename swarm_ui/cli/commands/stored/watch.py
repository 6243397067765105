"""``swarm-ui watch``: a live page about a run."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.live_page import UNTIL_INPUT_ENDS
from swarm_ui.cli.output import Output


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, in any state")],
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="port on this "
                    "machine (default: any that is free)")] = 0,
    show: Annotated[
        bool, flags.declare("--open/--no-open", help="open the page in the browser", panel="")
    ] = True,
    until_input_ends: Annotated[bool, typer.Option(UNTIL_INPUT_ENDS, hidden=True)] = False,
) -> int:  # fmt: skip
    """Serve a live page about a run on this machine, until Ctrl-C.

    It follows the files of the run and changes none. Its address holds a secret token, and it
    answers at 127.0.0.1 only.
    Example: [bold]swarm-ui watch runs/demo[/]
    """
    from swarm_ui.experiment.live.server import LiveServer

    output = Output()
    with LiveServer(run, port, warn=output.warn) as server:
        output.show(Text(f"live page: {server.url}", overflow="fold"))
        sys.stdout.flush()
        if show and not webbrowser.open(server.url):
            output.say("no browser could be opened: open the address yourself")
        if until_input_ends:
            _end_with_input(server.shutdown)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.say("stopped; the run continues, if it is running")
    return 0


def _end_with_input(end: Callable[[], None]) -> None:
    """Call ``end`` when standard input is closed, as it is when the starting process ends."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        end()

    threading.Thread(target=wait, daemon=True).start()
