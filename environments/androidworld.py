"""AndroidWorld on a real emulator, through the upstream package when it is installed.

Source of the protocol: google-research/android_world, ``suite_utils`` and ``episode_runner``.
The package is not on the package index; nothing here imports it before an environment is used.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.androidworld_screen import on_screen, to_element, to_png
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

INSTALL_HINT = (
    "AndroidWorld needs the module '{module}', which is not installed and is not on the package "
    "index. Install it as https://github.com/google-research/android_world describes: clone it, "
    "'pip install -r requirements.txt', 'python setup.py install', create the AVD "
    "'AndroidWorldAvd' (Pixel 6, API 33) and start it with '-no-snapshot -grpc 8554'."
)
STEPS_PER_COMPLEXITY = 10
_NOT_ON_ANDROID = frozenset({"select"})
_Result = TypeVar("_Result")


class AndroidWorldEnvironment:
    """Upstream's tasks, rewards and step budget (``int(10 * complexity)``) on one emulator.

    An episode is a success only if the agent declared it over (``status``) and upstream's check
    gives 1.0; a smaller share is told in the step's ``note``. Upstream's calls block, so they
    run in a thread.

    Args:
        family: task family of upstream's registry.
        pause: seconds between an action and the next look; ``None`` waits until the screen rests.
        screenshots: put a PNG into every observation.
        launch: keyword arguments for upstream's ``load_and_setup_env``, such as ``adb_path``.
    """

    def __init__(
        self,
        *,
        family: str = "android_world",
        pause: float | None = 1.0,
        screenshots: bool = False,
        launch: dict[str, object] | None = None,
    ) -> None:
        self._family = family
        self._pause = pause
        self._screenshots = screenshots
        self._launch = dict(launch or {})
        self._registry: dict[str, Any] | None = None
        self._device: Any = None
        self._task: Any = None
        self._now: Observation | None = None
        self._upstream_index: tuple[int, ...] = ()
        self._used = 0

    @property
    def name(self) -> str:
        return self._family

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._tasks())

    async def reset(self, *, task: str, seed: int) -> Observation:
        kinds = self._tasks()
        if task not in kinds:
            raise ConfigError(f"AndroidWorld's family '{self._family}' has no task {task!r}")
        self._now = None
        await self._guard("tear_down", self._tear_down)
        if self._device is None:
            launcher = _upstream("android_world.env.env_launcher")
            self._device = await self._guard(
                "launch", lambda: launcher.load_and_setup_env(**self._launch)
            )
        state = await self._guard(f"set up {task}", lambda: self._begin(kinds[task], seed))
        self._used = 0
        self._now = self._observe(state, str(self._task.goal), ())
        return self._now

    async def step(self, action: Action) -> Step:
        before, self._now = self._now, None  # no episode to go on with until the device answered
        if before is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        self._used += 1
        last = self._used >= int(STEPS_PER_COMPLEXITY * self._task.complexity)
        element = before.element(action.index)
        role, label = (element.role, element.label) if element else ("", "")
        history = (*before.history, Past(action=action, role=role, label=label))
        if action.action_type == "status":
            return await self._declared(replace(before, history=history))
        problem = _problem(action, before)
        if problem:
            after = replace(before, history=history)
        else:
            state = await self._guard(str(action), lambda: self._perform(action))
            after = self._observe(state, before.goal, history)
        if last:
            await self._end()
        else:
            self._now = after
        return Step(observation=after, truncated=last, note=problem)

    async def close(self) -> None:
        await self._end()
        device, self._device = self._device, None
        if device is not None:
            await self._guard("close", device.close)

    def _tasks(self) -> dict[str, Any]:
        if self._registry is None:
            registry = _upstream("android_world.registry").TaskRegistry()
            self._registry = dict(registry.get_registry(self._family))
        return self._registry

    def _begin(self, kind: Any, seed: int) -> Any:
        """Draw the task as upstream's suite does: from Python's global generator."""
        kind.set_device_time(self._device)
        before = random.getstate()
        random.seed(seed)
        try:
            params = dict(kind.generate_random_params())
        finally:
            random.setstate(before)
        self._task = kind({**params, "seed": seed})
        self._task.initialize_task(self._device)
        self._device.reset(bool(self._task.start_on_home_screen))
        self._device.hide_automation_ui()
        return self._device.get_state(wait_to_stabilize=True)

    def _perform(self, action: Action) -> Any:
        fields = {
            name: getattr(action, name)
            for name in action.__struct_fields__
            if name not in ("target", "index") and getattr(action, name) is not None
        }
        if action.index is not None:
            fields["index"] = self._upstream_index[action.index]
        json_action = _upstream("android_world.env.json_action").JSONAction
        self._device.execute_action(json_action(**fields))
        return self._look_after_pause()

    def _look_after_pause(self) -> Any:
        if self._pause is None:
            return self._device.get_state(wait_to_stabilize=True)
        time.sleep(self._pause)  # in a worker thread
        return self._device.get_state(wait_to_stabilize=False)

    async def _declared(self, after: Observation) -> Step:
        task, device = self._task, self._device
        share = float(await self._guard("is_successful", lambda: task.is_successful(device)))
        await self._end()
        return Step(
            observation=after,
            reward=1.0 if share >= 1.0 else 0.0,
            terminated=True,
            note=f"partly done: {share:.2f}" if 0.0 < share < 1.0 else "",
        )

    async def _end(self) -> None:
        self._now = None
        await self._guard("tear_down", self._tear_down)

    def _tear_down(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.tear_down(self._device)

    async def _guard(self, doing: str, call: Callable[[], _Result]) -> _Result:
        """Run a blocking upstream call in a thread; whatever it raises is the world's fault."""
        try:
            return await asyncio.to_thread(call)
        except ConfigError:
            raise
        except Exception as error:
            raise EnvironmentFault(f"AndroidWorld, {doing}: {error!r}") from error

    def _observe(self, state: Any, goal: str, history: tuple[Past, ...]) -> Observation:
        """Keep what can be seen, and remember each element's place in the unfiltered list."""
        size = self._device.logical_screen_size
        kept = [(i, e) for i, e in enumerate(state.ui_elements) if on_screen(e, size)]
        self._upstream_index = tuple(i for i, _ in kept)
        packages = Counter(e.package_name for _, e in kept if e.package_name)
        return Observation(
            goal=goal,
            elements=tuple(to_element(n, e) for n, (_, e) in enumerate(kept)),
            app=packages.most_common(1)[0][0] if packages else "",
            history=history,
            png=to_png(state.pixels) if self._screenshots else None,
        )


def _upstream(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(INSTALL_HINT.format(module=error.name or module)) from error


def _problem(action: Action, now: Observation) -> str:
    if action.action_type in _NOT_ON_ANDROID:
        return f"Android has no '{action.action_type}'"
    if action.index is not None and now.element(action.index) is None:
        return f"no element {action.index}; the screen has {len(now.elements)}"
    return ""
