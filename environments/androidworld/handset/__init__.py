"""A simulated handset for Google's own tools: android-env, and android_world on top of it.

The handset is the embedded phone with files, settings, packages and a clock. Its apps are
simplified versions of the apps that android_world's tasks use. The screens differ from those of
the real apps, so **scores on the handset are not AndroidWorld scores**. The adb layer is plain
Python; the rest needs android_world.

    handset = Handset(APPS)
    Adb(handset).run(["shell", "svc", "wifi", "enable"])
    env = connect()                             # upstream's AsyncAndroidEnv on a new handset
"""

from __future__ import annotations

from typing import Any

from swarm_ui.environments.androidworld.handset.adb.shell import Adb
from swarm_ui.environments.androidworld.handset.apps import APPS
from swarm_ui.environments.androidworld.handset.file_system import AdbFailure, UnsupportedCommand
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset

__all__ = ["APPS", "Adb", "AdbFailure", "AppSpec", "Handset", "UnsupportedCommand", "connect"]


def connect() -> Any:
    """Upstream android_world's ``AsyncAndroidEnv`` on a new handset with all its apps."""
    from swarm_ui.environments.androidworld.handset import simulator

    return simulator.android_world_env(Handset(APPS))
