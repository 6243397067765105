"""A device that shows a switch, a field and a list. Every action turns the switch on."""

from __future__ import annotations

import os
import tempfile
import time
from types import SimpleNamespace
from typing import Any

from android_forest import Node, forest, window

SWITCH, FIELD, LIST = (10, 40, 90, 60), (10, 70, 90, 90), (0, 100, 100, 180)


class AdbControllerError(Exception):
    """As android-env's: known by its name."""


class Pixels:
    """As much of upstream's RGB array as the adapter reads."""

    shape = (2, 1, 3)

    def tobytes(self) -> bytes:
        return bytes(6)


class Device:
    logical_screen_size = (100, 200)

    def __init__(self, port: int) -> None:
        self.port, self.on, self.dead = port, False, False
        self.done: list[dict[str, Any]] = []
        self.calls: list[str] = []

    def reset(self, go_home: bool) -> None:
        self.calls.append(f"reset home={go_home}")

    def hide_automation_ui(self) -> None:
        self.calls.append("hide")

    def close(self) -> None:
        self.calls.append("close")

    def get_state(self, wait_to_stabilize: bool = False) -> Any:
        if self.dead:
            raise OSError("adb: device offline")
        root = Node(
            "FrameLayout", (0, 0, 100, 200),
            Node("Switch", SWITCH, text=f"Wi-Fi of {self.port}", clickable=True, checkable=True,
                 checked=self.on),
            Node("EditText", FIELD, text="abc", hint_text="Name", editable=True),
            Node("ListView", LIST, scrollable=True),
        )  # fmt: skip
        boxes = [dict(zip(("x_min", "y_min", "x_max", "y_max"), box, strict=True))
                 for box in (SWITCH, LIST)]  # fmt: skip
        elements = [SimpleNamespace(bbox_pixels=SimpleNamespace(**box)) for box in boxes]
        return SimpleNamespace(forest=forest(window(root)), ui_elements=elements, pixels=Pixels())

    def execute_action(self, action: Any) -> None:
        """Do an action; the opening of some apps fails in ways of its own."""
        print("noise on the output", tempfile.gettempdir())
        match action.fields.get("app_name"):
            case "gone":
                raise ValueError("element index 5 is out of range")
            case "no such app":
                raise AdbControllerError("monkey: no activities found")
            case "broken":
                raise OSError("adb: device offline")
            case "hang":
                time.sleep(60)
            case "exit":
                os._exit(3)
        self.done.append(action.fields)
        self.on = True


def load_and_setup_env(console_port: int, **launch: Any) -> Device:
    return Device(console_port)
