"""A stand-in for upstream's package, as files, for processes that import it. It needs
``android_forest`` on the import path."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "android_world/__init__.py": "",
    "android_world/env/__init__.py": "",
    "android_world/env/json_action.py": """
class JSONAction:
    def __init__(self, **fields):
        self.fields = fields
""",
    "android_world/env/env_launcher.py": """
import os, tempfile, time
from android_forest import Node, forest, window
from types import SimpleNamespace as Bag

class Device:
    logical_screen_size = (100, 200)
    def __init__(self, port):
        self.port, self.on = port, False
    def reset(self, go_home): pass
    def hide_automation_ui(self): pass
    def close(self): pass
    def get_state(self, wait_to_stabilize=False):
        switch = Node("Switch", (0, 0, 10, 10), text=f"Wi-Fi of {self.port}", clickable=True,
                      checkable=True, checked=self.on)
        return Bag(forest=forest(window(switch)), ui_elements=[], pixels=None)
    def execute_action(self, action):
        print("noise on the output", tempfile.gettempdir())
        kind = action.fields["action_type"]
        if kind == "wait":
            time.sleep(60)
        elif kind == "navigate_home":
            os._exit(3)
        elif kind == "navigate_back":
            raise OSError("adb: device offline")
        self.on = True

def load_and_setup_env(console_port, **launch):
    return Device(console_port)
""",
    "android_world/registry.py": """
class WifiOn:
    complexity = 1.0
    start_on_home_screen = True
    goal = "Turn on Wi-Fi"
    def __init__(self, params): pass
    @classmethod
    def set_device_time(cls, device): pass
    @classmethod
    def generate_random_params(cls): return {}
    def initialize_task(self, device): device.on = False
    def is_successful(self, device): return float(device.on)
    def tear_down(self, device): pass

class TaskRegistry:
    def get_registry(self, family):
        return {"WifiOn": WifiOn}
""",
}


def write(folder: Path) -> None:
    """Put the package into ``folder``."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
