"""The handset as a simulator of android-env. Importing this module needs the extra ``android``.

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
from android_env.proto import state_pb2, task_pb2
from android_env.proto.a11y import android_accessibility_forest_pb2 as forest_pb2
from android_env.proto.a11y import android_accessibility_window_info_pb2 as window_pb2

from swarm_ui.environments.androidworld.handset.adb.adb import Adb
from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen import touch
from swarm_ui.environments.androidworld.handset.screen.accessibility_tree import (  # fmt: skip
    FLAGS,
    Node,
    windows,
)
from swarm_ui.environments.androidworld.handset.screen.camera import Camera
from swarm_ui.environments.androidworld.handset.screen.geometry import HEIGHT, SCALE, WIDTH, lay_out

LONG_PRESS_TOUCHES = 10
"""Number of consecutive touches at one position that make a long press."""


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
    where it came down is a tap, or a long press after :data:`LONG_PRESS_TOUCHES` touches. Lifting
    it elsewhere is a swipe.
    """

    def __init__(self, handset: Handset) -> None:
        super().__init__(config_classes.SimulatorConfig())
        self.handset = handset
        self.lock = threading.RLock()
        """Serialises the commands, because android-env calls from several threads."""
        self._camera = Camera()
        self._saved: dict[str, Handset] = {}
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
            duration = touch.LONG_PRESS_MS if len(path) >= LONG_PRESS_TOUCHES else 0
            with self.lock:
                touch.swipe(self.handset, path[0], path[-1], duration)

    def send_key(self, keycode: np.int32, event_type: str) -> None:
        """Press a key, given by its number in Linux' input events, when it is released."""
        if event_type not in ("keyup", "keypress"):
            return
        name = _LINUX_KEYS.get(int(keycode))
        if name is None:
            raise errors.SendActionError(
                f"the simulated handset does not know key {int(keycode)}; known: {_LINUX_KEYS}"
            )
        with self.lock:
            touch.press(self.handset, name)

    def save_state(self, request: Any) -> Any:
        """Save a copy of the handset under the argument ``name`` (default: ``default``)."""
        with self.lock:
            self._saved[str(request.args.get("name", "default"))] = self.handset.clone()
        return state_pb2.SaveStateResponse(status=state_pb2.SaveStateResponse.Status.OK)

    def load_state(self, request: Any) -> Any:
        """Restore the copy that was saved under ``name``."""
        saved = self._saved.get(str(request.args.get("name", "default")))
        if saved is None:
            return state_pb2.LoadStateResponse(
                status=state_pb2.LoadStateResponse.Status.NOT_FOUND,
                error_message=f"no such state; saved: {', '.join(self._saved) or 'none'}",
            )
        with self.lock:
            self.handset = saved.clone()
        return state_pb2.LoadStateResponse(status=state_pb2.LoadStateResponse.Status.OK)

    def _get_screenshot_impl(self) -> np.ndarray[Any, Any]:
        """RGB, ``[2400, 1080, 3]``."""
        with self.lock:
            pixels = np.frombuffer(self._camera.pixels(self.handset), dtype=np.uint8)
        return pixels.reshape(HEIGHT * SCALE, WIDTH * SCALE, 3)


_LINUX_KEYS = {1: "BACK", 14: "DEL", 15: "TAB", 28: "ENTER", 57: "SPACE", 102: "HOME", 158: "BACK"}


def android_env(handset: Handset) -> Any:
    """Upstream's ``AndroidEnv`` on a handset, built like upstream's own loader builds it."""
    simulator = HandsetSimulator(handset)
    task = task_pb2.Task(id="handset", name="a simulated handset", max_episode_sec=7200)
    manager = task_manager.TaskManager(task)
    middle = coordinator.Coordinator(
        simulator, manager, device_settings=device_settings.DeviceSettings(simulator)
    )
    return environment.AndroidEnv(simulator=simulator, coordinator=middle, task_manager=manager)


def accessibility_forest(handset: Handset) -> Any:
    """``AndroidAccessibilityForest`` with the window of the app and the status bar."""
    app, status = windows(handset, lay_out(handset))
    message = forest_pb2.AndroidAccessibilityForest()
    kinds = window_pb2.AndroidAccessibilityWindowInfo.WindowType
    for number, (root, kind) in enumerate(
        ((app, kinds.TYPE_APPLICATION), (status, kinds.TYPE_SYSTEM)), start=1
    ):
        window = message.windows.add()
        window.id = number
        window.layer = number
        window.window_type = kind
        window.is_active = window.is_focused = number == 1
        _bounds(window.bounds_in_screen, root)
        _add(window.tree, root, 0, number)
    message.windows[0].title = handset.front_app.name if handset.front_app else "home"
    return message


def _add(tree: Any, node: Node, depth: int, window: int) -> int:
    """Append a node and its descendants. Returns the number of the node."""
    number = len(tree.nodes)
    info = tree.nodes.add()
    info.unique_id = number
    info.window_id = window
    info.depth = depth
    info.class_name = node.class_name
    info.package_name = node.package
    info.text = node.text
    info.content_description = node.description
    info.hint_text = node.hint
    info.view_id_resource_name = node.resource
    for flag in FLAGS:
        setattr(info, f"is_{flag}", getattr(node, flag))
    info.is_enabled = info.is_visible_to_user = True
    _bounds(info.bounds_in_screen, node)
    children = [_add(tree, child, depth + 1, window) for child in node.children]
    tree.nodes[number].child_ids.extend(children)
    return number


def _bounds(message: Any, node: Node) -> None:
    message.left, message.top, message.right, message.bottom = node.box
