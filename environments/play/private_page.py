"""Opens the browser at an address that contains a secret."""

from __future__ import annotations

import atexit
import html
import os
import tempfile
import webbrowser
from pathlib import Path


def open_privately(address: str) -> bool:
    """Open an address without showing it in the list of processes.

    Returns whether a browser started.

    Other users of the machine can read the command lines of programs, including the browser's. So
    the browser gets a file that only this user can read, and that redirects to the address.
    """
    handle, name = tempfile.mkstemp(prefix="swarm-ui-", suffix=".html")  # readable by its owner
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        target = html.escape(address)
        file.write(f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">open')
    return webbrowser.open(Path(name).as_uri())
