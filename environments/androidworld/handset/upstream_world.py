"""Upstream android_world on a handset. Importing it needs android_world and android-env."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from android_world.env import android_world_controller as controllers
from android_world.env import interface

from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.simulator import accessibility_forest, android_env


class HandsetController(controllers.AndroidWorldController):  # type: ignore[misc]
    """Upstream's controller with the accessibility forest of the handset.

    On a real device an app sends the forest over the network. This class overrides the method
    that receives it and returns the same message.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env, a11y_method=controllers.A11yMethod.NONE)
        self._a11y_method = controllers.A11yMethod.A11Y_FORWARDER_APP

    def _get_a11y_forest(self) -> Any:
        simulator = self._env._coordinator._simulator
        with simulator.lock:
            return accessibility_forest(simulator.handset)


def android_world_env(
    handset: Handset, elements: Literal["forest", "uiautomator"] = "forest"
) -> Any:
    """Make upstream's ``AsyncAndroidEnv`` on a handset; see
    :func:`swarm_ui.environments.androidworld.handset.android_world_env`."""
    env = android_env(handset)
    if elements == "forest":
        controller = HandsetController(env)
    else:
        method = controllers.A11yMethod.UIAUTOMATOR
        controller = controllers.AndroidWorldController(env, a11y_method=method)
    return interface.AsyncAndroidEnv(controller)


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
