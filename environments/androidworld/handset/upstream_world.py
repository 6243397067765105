"""Upstream android_world on a handset. Importing this needs android_world and android-env."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from android_world.env import android_world_controller as controllers
from android_world.env import interface

from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.accessibility_proto import forest
from swarm_ui.environments.androidworld.handset.simulator import android_env


class HandsetController(controllers.AndroidWorldController):  # type: ignore[misc]
    """Upstream's controller; the accessibility forest comes from the handset.

    On a real device an app sends the forest over the network. Here upstream's code is given the
    same message at the place where it asks for it.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env, a11y_method=controllers.A11yMethod.NONE)
        self._a11y_method = controllers.A11yMethod.A11Y_FORWARDER_APP

    def _get_a11y_forest(self) -> Any:
        simulator = self._env._coordinator._simulator
        with simulator.lock:
            return forest(simulator.handset)


def android_world_env(
    handset: Handset, elements: Literal["forest", "uiautomator"] = "forest"
) -> Any:
    """Upstream's ``AsyncAndroidEnv`` on a handset.

    Args:
        handset: the device; keep it to look at, or take it up from the simulator after a restore.
        elements: where upstream gets the elements from: the accessibility forest, as with its app
            on an emulator, or ``uiautomator dump`` through upstream's own controller.
    """
    env = android_env(handset)
    if elements == "forest":
        controller = HandsetController(env)
    else:
        method = controllers.A11yMethod.UIAUTOMATOR
        controller = controllers.AndroidWorldController(env, a11y_method=method)
    return interface.AsyncAndroidEnv(controller)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Skip the pauses that upstream's code makes for a real device to keep up.

    A handset is done when a command returns. This replaces ``time.sleep`` for the whole process
    while it lasts, so it is for programs that do nothing else.
    """
    before = time.sleep
    time.sleep = lambda seconds: None
    try:
        yield
    finally:
        time.sleep = before
