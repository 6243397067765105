"""The folder for files that can be made or downloaded again, such as converted models."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from swarm_ui.errors import ConfigError

VARIABLE = "SWARM_UI_CACHE"
"""The variable that names another folder."""


def cache_folder() -> Path:
    """The user's cache folder of this library; it may not exist yet.

    ``SWARM_UI_CACHE`` if it is set; otherwise the platform's own place: ``~/.cache/swarm-ui`` (or
    under ``XDG_CACHE_HOME``), ``~/Library/Caches/swarm-ui``, or ``%LOCALAPPDATA%/swarm-ui/Cache``.

    Raises:
        ConfigError: the user has no home folder, and the variable is not set.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        home = Path.home()
    except RuntimeError as error:
        raise ConfigError(
            f"no cache folder: there is no home folder ({error}); set {VARIABLE} to a folder"
        ) from error
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "swarm-ui" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "swarm-ui"
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says that a relative path is to be ignored.
    return (Path(given) if os.path.isabs(given) else home / ".cache") / "swarm-ui"
