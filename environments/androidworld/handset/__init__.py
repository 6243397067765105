"""A simulated handset for Google's own tools: android-env, and android_world on top of it.

The handset is the embedded phone with files, settings, packages and a clock. Its apps are
simplified versions of the apps that android_world's tasks use. The screens differ from those of
the real apps, so **scores on the handset are not AndroidWorld scores**. The adb layer is plain
Python; the rest needs the extra ``android``.

    handset = Handset(APPS)
    Adb(handset).run(["shell", "svc", "wifi", "enable"])
    env = android_env(handset)                  # upstream's AndroidEnv
    env = android_world_env(handset)            # upstream's AsyncAndroidEnv
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal

from swarm_ui.environments.androidworld.handset.adb.adb import Adb
from swarm_ui.environments.androidworld.handset.apps import APPS
from swarm_ui.environments.androidworld.handset.errors import AdbFailure, UnsupportedCommand
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset
from swarm_ui.errors import ConfigError, MissingExtra

__all__ = [
    "APPS",
    "Adb",
    "AdbFailure",
    "AppSpec",
    "Handset",
    "UnsupportedCommand",
    "android_env",
    "android_world_env",
    "connect",
    "no_waiting",
]


def android_env(handset: Handset) -> Any:
    """Upstream's ``AndroidEnv`` on a handset.

    Raises:
        MissingExtra: android-env is not installed.
    """
    try:
        from swarm_ui.environments.androidworld.handset import simulator
    except ImportError as error:
        raise MissingExtra("android", "The simulator", error.name or "android_env") from error
    return simulator.android_env(handset)


def android_world_env(
    handset: Handset, elements: Literal["forest", "uiautomator"] = "forest"
) -> Any:
    """Upstream android_world's ``AsyncAndroidEnv`` on a handset.

    Args:
        handset: the device.
        elements: the source of upstream's UI elements. ``forest`` is the accessibility forest,
            which upstream's own app sends on an emulator; ``uiautomator`` is its dump.

    Raises:
        ConfigError: android_world, or android-env, is not installed.
    """
    return _world().android_world_env(handset, elements)


def connect() -> Any:
    """A new handset with all its apps, for ``AndroidWorldEnvironment(connect=connect)``."""
    return android_world_env(Handset(APPS))


def no_waiting() -> AbstractContextManager[None]:
    """Skip upstream's pauses for a real device: replaces ``time.sleep`` in the ``with`` block."""
    return _world().no_waiting()  # type: ignore[no-any-return]


def _world() -> Any:
    try:
        from swarm_ui.environments.androidworld.handset import upstream_world
    except ImportError as error:
        from swarm_ui.environments.androidworld.environment import INSTALL_HINT

        raise ConfigError(INSTALL_HINT.format(module=error.name or "android_world")) from error
    return upstream_world
