"""The handset as a simulator of android-env, and android_world on top of it. Importing this module
needs android-env.

A simulator runs in the calling process. It starts no emulator, adb program, server or thread. Each
simulator has its own handset, so any number can run in parallel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from android_env import environment
from android_env.components import (
    adb_controller,
    config_classes,
    coordinator,
    device_settings,
    errors,
    log_stream,
    task_manager,
)
from android_env.components.simulators import base_simulator
from android_env.proto import task_pb2
from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.androidworld.handset.adb.shell import Adb
from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen import geometry, touch
from swarm_ui.environments.androidworld.handset.screen.accessibility import accessibility_forest

_PAPER, _CARD, _INK, _FAINT, _ACCENT = "#f6f5fa", "#ffffff", "#1c1b20", "#d8d5e0", "#4f56b8"


class HandsetAdb(adb_controller.AdbController):  # type: ignore[misc]
    """An adb controller that passes commands to the handset."""

    def __init__(self, simulator: HandsetSimulator) -> None:
        # The parent's __init__ would read and change the environment variables of this process.
        self._simulator = simulator

    def execute_command(
        self, args: list[str], timeout: float | None = None, device_specific: bool = True
    ) -> bytes:
        """Run an adb command. A failure raises android-env's own error."""
        try:
            with self._simulator.lock:
                return Adb(self._simulator.handset).run(args)
        except AdbFailure as failure:
            raise errors.AdbControllerError(
                f"Error executing adb command: [adb {' '.join(args)}]: {failure}"
            ) from failure


class SilentLog(log_stream.LogStream):  # type: ignore[misc]
    """An empty log stream. It ends when it is stopped."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self._stopped = threading.Event()

    def _get_stream_output(self) -> Iterator[str]:
        self._stopped.wait()
        return iter(())

    def stop_stream(self) -> None:
        self._stopped.set()


class HandsetSimulator(base_simulator.BaseSimulator):  # type: ignore[misc]
    """A handset on which android-env acts.

    ``touch_position`` in [0, 1] is a position on a screen of 1080 x 2400 pixels. Lifting the finger
    where it came down is a tap, elsewhere a swipe.
    """

    def __init__(self, handset: Handset) -> None:
        super().__init__(config_classes.SimulatorConfig())
        self.handset = handset
        self.lock = threading.RLock()
        """Serialises the commands, because android-env calls from several threads."""
        self._seen: object = None
        self._pixels: np.ndarray[Any, Any] = np.zeros(0)
        self._finger: list[tuple[int, int]] = []

    def get_logs(self) -> str:
        return "a simulated handset keeps no log"

    def adb_device_name(self) -> str:
        return "simulated"

    def create_adb_controller(self) -> HandsetAdb:
        return HandsetAdb(self)

    def create_log_stream(self) -> SilentLog:
        return SilentLog()

    def _launch_impl(self) -> None:
        self._finger = []

    def send_touch(self, touches: list[tuple[int, int, bool, int]]) -> None:
        """Follow the first finger. Other fingers are ignored."""
        x, y, down, _ = touches[0]
        if down:
            self._finger.append((int(x), int(y)))
            return
        path, self._finger = self._finger, []
        if path:
            with self.lock:
                touch.swipe(self.handset, path[0], path[-1])

    def send_key(self, keycode: np.int32, event_type: str) -> None:
        raise errors.SendActionError("the simulated handset has no keys; adb's input types on it")

    def forest(self) -> Any:
        """The accessibility forest of the present screen."""
        with self.lock:
            return accessibility_forest(self.handset)

    def _get_screenshot_impl(self) -> np.ndarray[Any, Any]:
        """RGB, ``[2400, 1080, 3]``."""
        with self.lock:
            layout, scale = geometry.lay_out(self.handset), geometry.SCALE
            shown = [(w.role, w.text, w.value, w.checked, box) for w, box, _ in layout.placed]
            seen = (layout.title, self.handset.now // 60, shown)
            if seen != self._seen:  # drawing takes longer than all the rest of a step
                small = np.asarray(picture(self.handset, layout))
                self._seen, self._pixels = seen, small.repeat(scale, 0).repeat(scale, 1)
        return self._pixels


def picture(handset: Handset, layout: geometry.ScreenGeometry) -> Image.Image:
    """The screen in half of Android's resolution."""
    image = Image.new("RGB", (geometry.WIDTH, geometry.HEIGHT), _PAPER)
    pen, top = ImageDraw.Draw(image), geometry.TOP - 64
    pen.text((geometry.MARGIN, 12), f"{handset.when():%H:%M}", _INK, ImageFont.load_default(18))
    pen.text((64, top), layout.title, _INK, ImageFont.load_default(26))
    for widget, (left, top, right, bottom), _ in layout.placed:
        touchable = widget.effect is not None or widget.field is not None
        card = _CARD if touchable else _PAPER
        pen.rounded_rectangle((left, top, right, bottom), 8, fill=card, outline=_FAINT)
        if widget.checked is not None:
            box = (right - 36, top + 8, right - 16, top + 28)
            pen.ellipse(box, fill=_ACCENT if widget.checked else None, outline=_INK)
        said = "\n".join(filter(None, (widget.text or widget.description, widget.value)))
        pen.text((left + 10, top + 8), said, _INK, ImageFont.load_default(16))
    return image


def android_env(handset: Handset) -> Any:
    """Upstream's ``AndroidEnv`` on a handset, built like upstream's own loader builds it."""
    simulator = HandsetSimulator(handset)
    task = task_pb2.Task(id="handset", name="a simulated handset", max_episode_sec=7200)
    manager = task_manager.TaskManager(task)
    middle = coordinator.Coordinator(
        simulator, manager, device_settings=device_settings.DeviceSettings(simulator)
    )
    return environment.AndroidEnv(simulator=simulator, coordinator=middle, task_manager=manager)


def android_world_env(handset: Handset) -> Any:
    """Upstream's ``AsyncAndroidEnv`` on a handset."""
    from android_world.env import android_world_controller as controllers
    from android_world.env import interface

    env = android_env(handset)
    simulator: HandsetSimulator = env._coordinator._simulator
    controller = controllers.AndroidWorldController(env, a11y_method=controllers.A11yMethod.NONE)
    # On a real device an app sends the forest over the network, and this method receives it.
    controller._a11y_method = controllers.A11yMethod.A11Y_FORWARDER_APP
    controller._get_a11y_forest = simulator.forest
    return interface.AsyncAndroidEnv(controller)
