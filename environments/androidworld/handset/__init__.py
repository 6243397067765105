"""A simulated handset for Google's own tools: android-env, and android_world on top of it.

The handset is the embedded phone with files, settings, packages and a clock. Its apps are
simplified versions of the apps that android_world's tasks use. The screens differ from those of
the real apps, so **scores on the handset are not AndroidWorld scores**. The adb layer is plain
Python; the rest needs android_world.

    handset = Handset(APPS)
    Adb(handset).run(["shell", "svc", "wifi", "enable"])
    env = android_env(handset)                  # upstream's AndroidEnv
    env = android_world_env(handset)            # upstream's AsyncAndroidEnv
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swarm_ui.environments.androidworld.handset.adb.shell import Adb
from swarm_ui.environments.androidworld.handset.apps import APPS
from swarm_ui.environments.androidworld.handset.errors import AdbFailure, UnsupportedCommand
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset
from swarm_ui.errors import ConfigError

__all__ = [
    "APPS", "Adb", "AdbFailure", "AppSpec", "Handset", "UnsupportedCommand", "android_env",
    "android_world_env", "connect", "no_waiting",
]  # fmt: skip


def android_env(handset: Handset) -> Any:
    """Upstream's ``AndroidEnv`` on a handset.

    Raises:
        ConfigError: android-env is not installed.
    """
    with _installed():
        from swarm_ui.environments.androidworld.handset import simulator

    return simulator.android_env(handset)


def android_world_env(handset: Handset) -> Any:
    """Upstream android_world's ``AsyncAndroidEnv`` on a handset.

    Raises:
        ConfigError: android_world is not installed.
    """
    with _installed():
        from swarm_ui.environments.androidworld.handset import simulator

        return simulator.android_world_env(handset)


def connect() -> Any:
    """A new handset with all its apps, for ``AndroidWorldEnvironment(connect=connect)``."""
    return android_world_env(Handset(APPS))


@contextmanager
def no_waiting() -> Iterator[None]:
    """Skip the pauses that upstream's code makes for a real device.

    A handset has finished a command when the call returns. This context manager replaces
    ``time.sleep`` for the whole process, so use it only in a program that does nothing else.
    """
    before = time.sleep
    time.sleep = lambda seconds: None
    try:
        yield
    finally:
        time.sleep = before


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        from swarm_ui.environments.androidworld.environment import INSTALL_HINT

        raise ConfigError(INSTALL_HINT.format(module=error.name or "android_world")) from error
