"""AndroidWorld through the upstream package: on an emulator, or on a simulated handset.

    emulator = Emulator(console_port=5554, grpc_port=8554)
    worker = LocalWorker(partial(AndroidWorldProcess, emulator), slots=1)

Each device has a process, since upstream's modules have state, its calls block, and it can hang
with the device. The process may run in another Python, which has upstream's pinned requirements.
Source of the protocol: google-research/android_world, ``suite_utils`` and ``episode_runner``.
The package is not on the package index. It is imported when an environment is first used.
Scores on the simulated handset are not AndroidWorld scores.
"""

from __future__ import annotations

import asyncio
import datetime
import importlib
import os
import random
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, TypeVar
from unittest import mock

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.androidworld.screen import read_screen
from swarm_ui.environments.base import Acted, Done, Episodic, as_png, missing
from swarm_ui.environments.subprocess import ProcessEnvironment
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation
from swarm_ui.rollout import Job

PYTHON = "SWARM_UI_ANDROID_WORLD_PYTHON"
"""Environment variable: a Python that has android_world."""
INSTALL_HINT = (
    "AndroidWorld needs the module '{module}', which is not installed and is not on the package "
    "index. Make a separate Python environment with android_world as "
    "docs/howto/android_emulator.md says (https://github.com/google-research/android_world), and "
    "set SWARM_UI_ANDROID_WORLD_PYTHON to its python."
)
STEPS_PER_COMPLEXITY = 10
NO_DATA = "not done: the app has no data yet"
_NOT_STARTED = (
    "AndroidWorld: no emulator answers on localhost, console port {console} and gRPC port {grpc}; "
    "start it with: emulator -avd AndroidWorldAvd -no-snapshot -port {console} -grpc {grpc} "
    "(docs/howto/android_emulator.md), or use the simulated handset, device='handset'"
)


class Emulator(msgspec.Struct, frozen=True, kw_only=True):
    """An emulator on this machine, which you start yourself."""

    console_port: int = 5554
    """An even number. adb uses the next port."""
    grpc_port: int = 8554
    adb_path: str = "~/Android/Sdk/platform-tools/adb"

    def listens(self) -> bool:
        """Whether both ports accept connections."""
        for port in (self.console_port, self.grpc_port):
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                if probe.connect_ex(("localhost", port)) != 0:
                    return False
        return True

    def expect(self) -> None:
        """Check that the emulator accepts connections.

        Raises:
            EnvironmentFault: it accepts no connection. The message explains how to start it.
        """
        if not self.listens():
            raise EnvironmentFault(
                _NOT_STARTED.format(console=self.console_port, grpc=self.grpc_port)
            )


Device = Emulator | Literal["handset"]
_Result = TypeVar("_Result")


class AndroidWorldEnvironment(Episodic):
    """Upstream's tasks, rewards and step budget (``int(10 * complexity)``) on one device.

    An episode is a success only if the agent ended it (``status``) and upstream's check returns
    1.0. The step's ``note`` gives a smaller share. ``input_text`` replaces the contents of a field;
    with ``clear_text=False`` it appends to them. Upstream's calls block, so they run in a thread; a
    call that hangs cannot be stopped, but :class:`AndroidWorldProcess` can end the whole process.

    Args:
        device: an emulator, or ``"handset"`` for the simulated handset.
        pause: seconds between an action and the next observation.
        screenshots: put a PNG into every observation.
    """

    name = "android_world"
    actions = (
        "click", "double_tap", "long_press", "input_text", "scroll", "swipe", "navigate_home",
        "navigate_back", "keyboard_enter", "open_app", "wait", "answer", "status",
    )  # fmt: skip

    def __init__(self, device: Device, *, pause: float = 1.0, screenshots: bool = False) -> None:
        self._place, self._pause, self._screenshots = device, pause, screenshots
        self._device: Any = None
        self._task: Any = None
        self._state: Any = None
        """Upstream's state of the screen after the last action."""

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        """Upstream's classes of the tasks."""
        registry = _upstream("android_world.registry").TaskRegistry()
        return dict(registry.get_registry("android_world"))

    @property
    def tasks(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the tasks; the first look imports upstream's package."""
        return tuple(self._kinds)

    async def begin(self, task: str, rng: random.Random) -> str:
        if self._device is None:
            self._device = await _guarded("launch", self._open)
        kind, seed = self._kinds[task], self.seed
        self._state = await _guarded(f"set up {task}", lambda: self._set_up(kind, seed))
        self.budget = int(STEPS_PER_COMPLEXITY * self._task.complexity)
        return str(self._task.goal)

    def screen(self) -> Observation:
        if self._state.forest is None:
            raise EnvironmentFault(
                "AndroidWorld: the device sent no accessibility tree; set the emulator up again as "
                "docs/howto/android_emulator.md says, which installs the app that sends it"
            )
        shown = read_screen(self._state.forest, self._device.logical_screen_size)
        png = as_png(self._state.pixels) if self._screenshots else None
        return msgspec.structs.replace(shown, png=png)

    def misfit(self, action: Action, screen: Observation) -> str:
        """Android tells little about what can be clicked, so everything may be."""
        if not screen.offers(action.action_type):
            return f"Android has no '{action.action_type}'"
        # Upstream's JSONAction raises an error for these, which would be a fault of the device.
        if action.to_index is not None or action.to_x is not None:
            return "AndroidWorld has no drag: give a 'direction'"
        if action.keycode is not None and not action.keycode.startswith("KEYCODE_"):
            return f"no key {action.keycode!r}; the names of keys begin with KEYCODE_"
        return missing(action, screen)

    async def act(self, action: Action, element: Any) -> Acted:
        if action.action_type == "status":
            share, note = await _guarded("is_successful", self._check)
            partly = f"partly done: {share:.2f}" if 0.0 < share < 1.0 else ""
            return Done(reward=1.0 if share >= 1.0 else 0.0, note=note or partly)
        fields = self._fields(action, element)
        self._state, note = await _guarded(str(action), lambda: self._perform(fields))
        return note

    async def end(self) -> None:
        await _guarded("tear down", self._tear_down)

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            device, self._device = self._device, None
            if device is not None:
                await _guarded("close", device.close)

    # -- blocking calls of upstream -----------------------------------------------------------

    def _open(self) -> Any:
        """Connect to the device, after checking that it accepts connections."""
        if self._place == "handset":
            from swarm_ui.environments.androidworld import handset

            return handset.connect()
        launcher = _upstream("android_world.env.env_launcher")
        self._place.expect()
        return launcher.load_and_setup_env(**msgspec.structs.asdict(self._place))

    def _set_up(self, kind: Any, seed: int) -> Any:
        """Set up a task. Returns upstream's state of the screen.

        Upstream draws from Python's global generator, in some tasks also when it sets them up.
        """
        kind.set_device_time(self._device)
        before = random.getstate()
        random.seed(seed)
        try:
            self._task = kind({**_parameters(kind, seed), "seed": seed})
            self._task.initialize_task(self._device)
            self._device.reset(bool(self._task.start_on_home_screen))
            self._device.hide_automation_ui()
            return self._device.get_state(wait_to_stabilize=True)
        except Exception as error:
            try:
                self._tear_down()
            except Exception as second:
                raise EnvironmentFault(
                    f"AndroidWorld, set up: {error!r}; the tear-down failed too: {second!r}"
                ) from error
            raise
        finally:
            random.setstate(before)

    def _fields(self, action: Action, element: Any) -> dict[str, Any]:
        """The fields of upstream's action. Elements become points: upstream numbers others."""
        fields = {
            name: getattr(action, name)
            for name in action.__struct_fields__
            if name not in ("target", "index") and getattr(action, name) is not None
        }
        if action.action_type == "input_text":
            fields.setdefault("clear_text", True)
        if element is None:
            return fields
        left, top, right, bottom = element.bounds
        if action.action_type not in ("scroll", "swipe"):
            return {**fields, "x": (left + right) // 2, "y": (top + bottom) // 2}
        boxes = [one.bbox_pixels for one in self._state.ui_elements]
        found = [box and (box.x_min, box.y_min, box.x_max, box.y_max) for box in boxes]
        if element.bounds in found:
            fields["index"] = found.index(element.bounds)
        return fields

    def _perform(self, fields: dict[str, Any]) -> tuple[Any, str]:
        """Perform an action. Returns upstream's state afterwards, and the step's note."""
        json_action, note = _upstream("android_world.env.json_action").JSONAction, ""
        try:
            self._device.execute_action(json_action(**fields))
        except (ValueError, IndexError) as error:
            # Upstream reads the screen once more; the element may have gone since the observation.
            note = f"not done: {error}"
        except Exception as error:
            # A missing app is the agent's mistake. If the device failed, get_state below raises.
            if fields["action_type"] != "open_app" or type(error).__name__ != "AdbControllerError":
                raise
            note = f"no app {fields['app_name']!r}"
        time.sleep(self._pause)  # in a worker thread
        return self._device.get_state(wait_to_stabilize=False), note

    def _check(self) -> tuple[float, str]:
        """Upstream's verdict, and a note.

        Some set-ups delete an app's database, which the app creates when it is opened. Without the
        file or its tables upstream's check raises an error although the device works: the task is
        not done.
        """
        try:
            return float(self._task.is_successful(self._device)), ""
        except (FileNotFoundError, sqlite3.OperationalError):
            self._device.get_state(wait_to_stabilize=False)  # raises if the device has failed
            return 0.0, NO_DATA

    def _tear_down(self) -> None:
        task, self._task = self._task, None
        if task is not None and self._device is not None:
            task.tear_down(self._device)


def make(device: object, **settings: Any) -> AndroidWorldEnvironment:
    """The environment, for a process that does nothing else."""
    if device == "handset":
        time.sleep = lambda seconds: None  # upstream waits for a device that takes time
        settings["pause"] = 0.0
    return AndroidWorldEnvironment(msgspec.convert(device, Device), **settings)


class AndroidWorldProcess(ProcessEnvironment):
    """:class:`AndroidWorldEnvironment` in a process of its own.

    Args:
        device: an emulator, or ``"handset"`` for the simulated handset, which needs no pauses.
        pause, screenshots: see :class:`AndroidWorldEnvironment`.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
        options: ``step_timeout`` and ``log`` of
            :class:`~swarm_ui.environments.subprocess.ProcessEnvironment`.
    """

    def __init__(
        self,
        device: Device,
        *,
        pause: float = 1.0,
        screenshots: bool = False,
        python: str | None = None,
        **options: Any,
    ) -> None:
        settings = {"device": msgspec.to_builtins(device), "pause": pause}
        super().__init__(
            f"{__name__}:make",
            settings | {"screenshots": screenshots},
            name="android_world (simulated)" if device == "handset" else "android_world",
            python=python or os.environ.get(PYTHON),
            **options,
        )


def suite(tasks: Iterable[str], *, combinations: int = 1, seed: int = 30) -> list[Job]:
    """Upstream's suite for a seed: the same tasks with the same parameters, in the same order.

    Args:
        tasks: names of the tasks.
        combinations: number of instances of each task, with different parameters.
        seed: seed of the suite.
    """
    jobs = []
    for task in sorted(tasks):
        for number in range(combinations):
            digest = sha256(f"{seed}_{task}_{number}".encode()).hexdigest()  # as upstream
            jobs.append((task, int(digest, 16) % 2**32))
    return jobs


def _parameters(kind: Any, seed: int) -> dict[str, Any]:
    """A task's parameters; for a name that it makes of the present time, the time follows from the
    seed."""
    module = sys.modules[kind.__module__]
    if getattr(module, "datetime", None) is not datetime:
        return dict(kind.generate_random_params())
    now = datetime.datetime(2023, 10, 15) + datetime.timedelta(seconds=seed % 86_400)
    frozen = type("datetime", (datetime.datetime,), {"now": staticmethod(lambda tz=None: now)})
    with mock.patch.object(module, "datetime", mock.Mock(wraps=datetime, datetime=frozen)):
        return dict(kind.generate_random_params())


async def _guarded(doing: str, call: Callable[[], _Result]) -> _Result:
    """Run a blocking upstream call in a thread. Its errors become an ``EnvironmentFault``."""
    try:
        return await asyncio.to_thread(call)
    except (ConfigError, EnvironmentFault):
        raise
    except Exception as error:
        raise EnvironmentFault(f"AndroidWorld, {doing}: {error!r}") from error


def _upstream(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(INSTALL_HINT.format(module=error.name or module)) from error
