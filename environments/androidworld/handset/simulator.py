"""The handset as a simulator of android-env, and android_world on top of it. Importing this module
needs android-env.

A simulator runs in the calling process. It starts no emulator, adb program, server or thread. Each
simulator has its own handset, so any number can run in parallel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
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
from android_env.proto.a11y import android_accessibility_forest_pb2 as forest_pb2
from android_env.proto.a11y import android_accessibility_window_info_pb2 as window_pb2

from swarm_ui.environments.androidworld.handset.adb.shell import Adb
from swarm_ui.environments.androidworld.handset.file_system import AdbFailure
from swarm_ui.environments.androidworld.handset.handset import Control, Handset
from swarm_ui.environments.androidworld.handset.screen import (
    HEIGHT,
    SCALE,
    TOP,
    WIDTH,
    Box,
    Placed,
    lay_out,
    swipe,
)
from swarm_ui.environments.phone.picture import picture
from swarm_ui.environments.phone.state import Widget
from swarm_ui.environments.phone.view import element_of

_CLASSES = {
    "button": "android.widget.Button", "icon": "android.widget.ImageButton",
    "field": "android.widget.EditText", "area": "android.widget.EditText",
    "checkbox": "android.widget.CheckBox", "radio": "android.widget.RadioButton",
    "image": "android.widget.ImageView", "tab": "androidx.appcompat.app.ActionBar$Tab",
}  # fmt: skip
_TEXT, _ROW = "android.widget.TextView", "android.widget.LinearLayout"
_LIST = "androidx.recyclerview.widget.RecyclerView"
_FULL: Box = (0, 0, WIDTH * SCALE, HEIGHT * SCALE)


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
                swipe(self.handset, path[0], path[-1])

    def send_key(self, keycode: np.int32, event_type: str) -> None:
        raise errors.SendActionError("the simulated handset has no keys; adb's input types on it")

    def forest(self) -> Any:
        """The accessibility forest of the present screen."""
        with self.lock:
            return accessibility_forest(self.handset)

    def _get_screenshot_impl(self) -> np.ndarray[Any, Any]:
        """RGB, ``[2400, 1080, 3]``."""
        with self.lock:
            layout = lay_out(self.handset)
            shown = [element_of(k, one.widget, one.box) for k, one in enumerate(layout.placed)]
            seen = (layout.title, shown, f"{self.handset.when():%H:%M}")
            if seen != self._seen:  # drawing takes longer than all the rest of a step
                small = np.asarray(picture(*seen))
                self._seen, self._pixels = seen, small.repeat(SCALE, 0).repeat(SCALE, 1)
        return self._pixels


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


# -- the accessibility tree, as Android's services report it ---------------------------------------


def accessibility_forest(handset: Handset) -> Any:
    """``AndroidAccessibilityForest`` with the window of the foreground app."""
    forest = forest_pb2.AndroidAccessibilityForest()
    window = forest.windows.add()
    window.id = window.layer = 1
    window.window_type = window_pb2.AndroidAccessibilityWindowInfo.WindowType.TYPE_APPLICATION
    window.is_active = window.is_focused = True
    window.title = handset.front_app.name if handset.front_app else "home"
    _bounds(window.bounds_in_screen, _FULL)
    _Tree(window.tree, handset).build()
    return forest


class _Tree:
    """Writes the nodes of the screen into a message."""

    def __init__(self, message: Any, handset: Handset) -> None:
        self._message, self._handset = message, handset
        self._package = handset.component.partition("/")[0]

    def build(self) -> None:
        layout = lay_out(self._handset)
        area: Box = tuple(SCALE * edge for edge in layout.area)  # type: ignore[assignment]
        title = self._title(layout.title) if self._handset.stack else []
        fixed = [one for one in layout.placed if not one.scrolled]
        above = [self._placed(one) for one in fixed if one.pixels[1] < area[1]]
        moving = [self._placed(one) for one in layout.placed if one.scrolled]
        scrolls = layout.pages > 1
        middle = [self._add(_LIST, area, moving, is_scrollable=scrolls)] if moving else []
        below = [self._placed(one) for one in fixed if one.pixels[1] >= area[1]]
        self._add("android.widget.FrameLayout", _FULL, [*title, *above, *middle, *below])

    def _add(self, kind: str, box: Box, children: Sequence[int] = (), /, **fields: Any) -> int:
        """Append a node after its children. Returns its number."""
        number = len(self._message.nodes)
        node = self._message.nodes.add(
            unique_id=number, window_id=1, class_name=kind, package_name=self._package,
            child_ids=children, is_enabled=True, is_visible_to_user=True, **fields,
        )  # fmt: skip
        _bounds(node.bounds_in_screen, box)
        return number

    def _title(self, title: str) -> list[int]:
        top, bottom = (TOP - 60) * SCALE, (TOP - 16) * SCALE
        nodes = list[int]()
        if len(self._handset.stack) > 1:
            up = {"content_description": "Navigate up", **_touchable(True)}
            nodes.append(self._add(_CLASSES["icon"], (24, top, 104, bottom), **up))
        return [*nodes, self._add(_TEXT, (128, top, 1040, bottom), text=title)]

    def _placed(self, placed: Placed) -> int:
        widget, role = placed.widget, placed.widget.role
        held = isinstance(widget, Control) and widget.long_press is not None
        touched = {**_touchable(widget.effect is not None), "is_long_clickable": held}
        if role in ("item", "text", "switch"):
            return self._add(_ROW, placed.pixels, self._inside(widget, placed.pixels), **touched)
        if widget.field is not None:
            return self._add(
                _CLASSES[role], placed.pixels, text=widget.value or widget.text,
                hint_text=widget.text,  # an empty field reports its hint as text, as on Android
                view_id_resource_name=f"{self._package}:id/{widget.field.replace(' ', '_')}",
                is_editable=True, is_focused=self._handset.focus == widget.field,
                is_long_clickable=True, **_touchable(True),
            )  # fmt: skip
        tab = role == "tab"
        return self._add(
            _CLASSES.get(role, _TEXT), placed.pixels, text=widget.text,
            content_description=widget.description or (widget.text if tab or role == "app" else ""),
            is_checkable=widget.checked is not None and not tab,
            is_checked=bool(widget.checked) and not tab, is_selected=bool(widget.checked) and tab,
            **touched,
        )  # fmt: skip

    def _inside(self, widget: Widget, box: Box) -> list[int]:
        """The texts and the switch of a row, which itself handles the touches."""
        left, top, right, bottom = box
        switch, middle = widget.role == "switch", (top + bottom) // 2
        edge = right - 160 if switch else right - 24
        end = bottom - 8 if widget.value is None else middle
        nodes = [self._add(_TEXT, (left + 24, top + 8, edge, end), text=widget.text)]
        if widget.value is not None:
            nodes.append(self._add(_TEXT, (left + 24, middle, edge, bottom - 8), text=widget.value))
        if switch:
            state = {"is_checkable": True, "is_checked": bool(widget.checked)}
            place = (edge, top + 8, right - 24, bottom - 8)
            nodes.append(self._add("android.widget.Switch", place, **state))
        return nodes


def _touchable(yes: bool) -> dict[str, bool]:
    return {"is_clickable": yes, "is_focusable": yes}


def _bounds(message: Any, box: Box) -> None:
    message.left, message.top, message.right, message.bottom = box
