"""One task, with switches for what can go wrong."""

from __future__ import annotations

import datetime
import random
from typing import Any


class WifiOn:
    complexity = 0.35
    start_on_home_screen = True
    verdict: float | Exception | None = None
    """``None``: whether the switch is on."""
    breaks, sticks = False, False

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.goal = f"Turn on Wi-Fi {params['number']} {params['time']}"

    @classmethod
    def set_device_time(cls, device: Any) -> None:
        device.calls.append("time")

    @classmethod
    def generate_random_params(cls) -> dict[str, Any]:
        now = datetime.datetime.now()
        return {"number": random.randrange(10**6), "time": now.strftime("%f %S %H")}

    def initialize_task(self, device: Any) -> None:
        device.on = False
        device.calls.append(f"initialize seed={self.params['seed']}")
        if self.breaks:
            raise RuntimeError("no such app")

    def is_successful(self, device: Any) -> float:
        device.calls.append("check")
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return float(device.on) if self.verdict is None else self.verdict

    def tear_down(self, device: Any) -> None:
        device.calls.append("tear down")
        if self.sticks:
            raise RuntimeError("nothing to tear down")


class TaskRegistry:
    def get_registry(self, family: str) -> dict[str, Any]:
        return {"WifiOn": WifiOn}
