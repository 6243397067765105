"""AndroidWorld through the upstream package: on an emulator, or on a simulated handset.

Source of the protocol: google-research/android_world, ``suite_utils`` and ``episode_runner``.
The package is not on the package index. It is imported when an environment is first used.
Scores on the simulated handset are not AndroidWorld scores.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.environments.androidworld.upstream_screen import on_screen, to_element, to_png
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

INSTALL_HINT = (
    "AndroidWorld needs the module '{module}', which is not installed and is not on the package "
    "index. Make a separate Python environment, and set SWARM_UI_ANDROID_WORLD_PYTHON to its "
    "python. Clone https://github.com/google-research/android_world. In the clone, run with this "
    "Python 'pip install -r requirements.txt \"setuptools<81\" wheel', then "
    "'pip install --no-deps --no-build-isolation .'. Create the AVD "
    "'AndroidWorldAvd' (Pixel 6, API 33) and start it with '-no-snapshot -grpc 8554'; "
    "docs/howto/android_emulator.md has every step."
)
STEPS_PER_COMPLEXITY = 10
FAMILIES = ("android_world", "android", "information_retrieval", "miniwob", "miniwob_subset")
"""Task families of upstream's registry."""
_NOT_ON_ANDROID = frozenset({"select"})
_Result = TypeVar("_Result")


class AndroidWorldEnvironment:
    """Upstream's tasks, rewards and step budget (``int(10 * complexity)``) on one device.

    An episode is a success only if the agent ended it (``status``) and upstream's check returns
    1.0. The step's ``note`` gives a smaller share. A web page of the MiniWoB families ends its
    episode itself. Upstream's calls block, so they run in a thread.

    Args:
        family: task family of upstream's registry, see :data:`FAMILIES`.
        pause: seconds between an action and the next observation; ``None`` waits until the
            screen is stable.
        screenshots: put a PNG into every observation.
        launch: keyword arguments for upstream's ``load_and_setup_env``, such as ``adb_path``,
            ``console_port`` and ``grpc_port``.
        connect: creates upstream's ``AsyncEnv`` in place of ``load_and_setup_env``, such as
            :func:`swarm_ui.environments.androidworld.handset.connect` for a simulated handset.
        budget: maximum number of steps of an episode; ``None`` for upstream's.
        timeout: time limit of a step in seconds, or ``None``. A thread that hangs cannot be
            stopped, so the device is dropped; :class:`AndroidWorldProcess` can also kill it.
    """

    def __init__(
        self,
        *,
        family: str = "android_world",
        pause: float | None = 1.0,
        screenshots: bool = False,
        launch: dict[str, object] | None = None,
        connect: Callable[[], Any] | None = None,
        budget: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if family not in FAMILIES:
            raise ConfigError(f"AndroidWorld: no family {family!r}; known: {', '.join(FAMILIES)}")
        if budget is not None and budget < 1:
            raise ConfigError(f"AndroidWorld: 'budget' must be at least 1, got {budget}")
        self._family = family
        self._connect = connect
        self._budget = budget
        self._timeout = timeout
        self._pause = pause
        self._screenshots = screenshots
        self._launch = dict(launch or {})
        self._device: Any = None
        self._task: Any = None
        self._now: Observation | None = None
        self._upstream_index: tuple[int, ...] = ()
        self._used = 0
        self._page = False

    @property
    def name(self) -> str:
        return self._family

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._kinds)

    @property
    def budget(self) -> int:
        """Maximum number of actions of the running episode."""
        if self._budget is not None:
            return self._budget
        if self._task is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        return int(STEPS_PER_COMPLEXITY * self._task.complexity)

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in self._kinds:
            raise ConfigError(f"AndroidWorld's family '{self._family}' has no task {task!r}")
        self._now = None
        await self._guard("tear_down", self._tear_down, limited=False)
        if self._device is None:
            self._device = await self._guard("launch", self._open, limited=False)
        state = await self._guard(
            f"set up {task}", lambda: self._begin(self._kinds[task], seed), limited=False
        )
        self._page = task.lower().startswith("miniwob")
        self._used = 0
        self._now = self._observe(state, str(self._task.goal), ())
        return self._now

    async def step(self, action: Action) -> Step:
        # Until the device has answered, no episode is running.
        before, self._now = self._now, None
        if before is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        self._used += 1
        last = self._used >= self.budget
        history = (*before.history, before.past(action))
        if action.action_type == "status":
            return await self._declared(replace(before, history=history))
        problem = _problem(action, before)
        if problem:
            after = replace(before, history=history)
        else:
            state, problem = await self._guard(str(action), lambda: self._perform(action))
            after = self._observe(state, before.goal, history)
            if self._page and await self._guard("look at the page", self._page_over):
                return await self._declared(after)
        if last:
            await self._end()
        else:
            self._now = after
        return Step(observation=after, truncated=last, note=problem)

    async def close(self) -> None:
        try:
            await self._end()
        finally:
            device, self._device = self._device, None
            if device is not None:
                await self._guard("close", device.close)

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        """Upstream's classes of the tasks."""
        registry = _upstream("android_world.registry").TaskRegistry()
        return dict(registry.get_registry(self._family))

    def _open(self) -> Any:
        """Connect to the device, after checking that it accepts connections."""
        if self._connect is not None:
            return self._connect()
        launcher = _upstream("android_world.env.env_launcher")
        Emulator.of(self._launch).expect()
        return launcher.load_and_setup_env(**self._launch)

    def _page_over(self) -> bool:
        """Whether a MiniWoB page has ended its episode, by the check of upstream's runner."""
        ended = _upstream("android_world.task_evals.miniwob.miniwob_base").is_episode_terminated
        return bool(ended(self._device))

    def _begin(self, kind: Any, seed: int) -> Any:
        """Set up a task. Like upstream's suite it draws from Python's global generator."""
        kind.set_device_time(self._device)
        before = random.getstate()
        random.seed(seed)
        try:
            params = dict(kind.generate_random_params())
        finally:
            random.setstate(before)
        self._task = kind({**params, "seed": seed})
        try:
            self._task.initialize_task(self._device)
            self._device.reset(bool(self._task.start_on_home_screen))
            self._device.hide_automation_ui()
            return self._device.get_state(wait_to_stabilize=True)
        except Exception as error:
            # Otherwise the next reset would tear this task down, and fault in its place.
            try:
                self._tear_down()
            except Exception as second:
                raise EnvironmentFault(
                    f"AndroidWorld, set up: {error!r}; the tear-down failed too: {second!r}"
                ) from error
            raise

    def _perform(self, action: Action) -> tuple[Any, str]:
        """Perform an action. Returns upstream's state afterwards, and the step's note."""
        fields = {
            name: getattr(action, name)
            for name in action.__struct_fields__
            if name not in ("target", "index") and getattr(action, name) is not None
        }
        if action.index is not None:
            fields["index"] = self._upstream_index[action.index]
        json_action = _upstream("android_world.env.json_action").JSONAction
        problem = ""
        try:
            self._device.execute_action(json_action(**fields))
        except (ValueError, IndexError) as error:
            # Upstream reads the screen once more; the element may have gone since the observation.
            problem = f"not done: {error}"
        except Exception as error:
            # A missing app is the agent's mistake. If the device failed, get_state below raises.
            if action.action_type != "open_app" or type(error).__name__ != "AdbControllerError":
                raise
            problem = f"no app {action.app_name!r}"
        return self._look_after_pause(), problem

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
        await self._guard("tear_down", self._tear_down, limited=False)

    def _tear_down(self) -> None:
        task, self._task = self._task, None
        if task is not None and self._device is not None:
            task.tear_down(self._device)

    async def _guard(
        self, doing: str, call: Callable[[], _Result], *, limited: bool = True
    ) -> _Result:
        """Run a blocking upstream call in a thread. Its errors become an ``EnvironmentFault``.

        Set-up and tear-down are slow on an emulator, so the time limit is only for steps.
        """
        try:
            async with asyncio.timeout(self._timeout if limited else None) as limit:
                return await asyncio.to_thread(call)
        except (ConfigError, EnvironmentFault):
            raise
        except Exception as error:
            if not limit.expired():
                raise EnvironmentFault(f"AndroidWorld, {doing}: {error!r}") from error
            self._device = self._task = None  # the thread still uses them, so they are dropped here
            raise EnvironmentFault(
                f"AndroidWorld, {doing}: no answer within {self._timeout} s"
            ) from error

    def _observe(self, state: Any, goal: str, history: tuple[Past, ...]) -> Observation:
        """The visible elements as an observation. Also stores their indices in upstream's list."""
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
    # Upstream's JSONAction raises an error for these, which would be a fault of the device.
    if action.to_index is not None or action.to_x is not None:
        return "AndroidWorld has no drag: give a 'direction'"
    if action.keycode is not None and not action.keycode.startswith("KEYCODE_"):
        return f"no key {action.keycode!r}; the names of keys begin with KEYCODE_"
    if action.index is not None and now.element(action.index) is None:
        return f"no element {action.index}; the screen has {len(now.elements)}"
    return ""
