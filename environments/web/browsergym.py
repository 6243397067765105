"""BrowserGym's benchmarks, such as WebArena and WorkArena, in a Python of their own.

    env = BrowserGymProcess("miniwob", python="/other/bin/python")
    await env.start()
    env.tasks                                    # ("ascending-numbers", ...)

BrowserGym pins an old Playwright and blocks, so it runs in another process. That Python needs
``msgspec`` and the package of the benchmark, such as ``browsergym-miniwob``. Goals, rewards and
ends of episodes are BrowserGym's. Agents see the accessibility tree that BrowserGym reads. Each of
their actions becomes a call of BrowserGym's functions, whose arguments are literals: BrowserGym
executes that line as Python, and no text of an agent or of a page can add to it.

Source: ServiceNow/BrowserGym, ``core/env.py`` and ``core/action/functions.py`` (0.14).
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from swarm_ui.action import Action
from swarm_ui.environments.base import Acted, Done, Episodic, as_png
from swarm_ui.environments.subprocess import ProcessEnvironment
from swarm_ui.environments.web.acting import AHEAD, KEYS
from swarm_ui.environments.web.browser import find_browser
from swarm_ui.environments.web.reading import ACTABLE, MOST_ELEMENTS, ROLES, WHOLE, facts
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation, Role

PYTHON = "SWARM_UI_BROWSERGYM_PYTHON"
"""Environment variable: a Python that has BrowserGym."""
NO_PYTHON = (
    "BrowserGym runs in a Python of its own, and none is named: make one with 'pip install msgspec "
    f"browsergym-{{benchmark}}', and set {PYTHON} to its python"
)
VISIBLE = 0.5
"""Elements of which a smaller share can be seen are left out."""
_CHOICES = ("combobox", "listbox")
"""Roles whose options are listed with them."""
_READ = ("text", "heading", "cell", "dialog")
"""Roles of what is only to be read."""
T = TypeVar("T")


class BrowserGymProcess(ProcessEnvironment):
    """The tasks of one benchmark of BrowserGym, in a process of its own.

    Args:
        benchmark: the part of BrowserGym's task names before the dot, such as ``"webarena"``.
        python: the Python to run; by default the one named by :data:`PYTHON`.
        screenshots: put a PNG into every observation.

    Raises:
        ConfigError: no Python is named.
    """

    def __init__(
        self, benchmark: str, *, python: str | None = None, screenshots: bool = False
    ) -> None:
        python = python or os.environ.get(PYTHON)
        if not python:
            raise ConfigError(NO_PYTHON.format(benchmark=benchmark))
        super().__init__(
            f"{__name__}:BrowserGymEnvironment",
            {
                "benchmark": benchmark,
                "browser": str(find_browser() or ""),
                "screenshots": screenshots,
            },
            name=f"browsergym/{benchmark}",
            python=python,
        )


class BrowserGymEnvironment(Episodic):
    """The tasks of one benchmark, where BrowserGym is installed; for :class:`BrowserGymProcess`.
    ``browser``: the Chromium to use; empty: that of BrowserGym's Playwright."""

    actions = ("click", "double_tap", "input_text", "select", "scroll", "keyboard_enter",
               "navigate_back", "wait", "answer", "status")  # fmt: skip

    def __init__(self, benchmark: str, *, browser: str = "", screenshots: bool = False) -> None:
        self._prefix, self._screenshots = f"browsergym/{benchmark}.", screenshots
        # Playwright's blocking interface stays in the thread that started it.
        self._thread = ThreadPoolExecutor(1, "browsergym")
        self._env: Any = None
        self._seen: Mapping[str, Any] = {}
        try:
            importlib.import_module(f"browsergym.{benchmark}")
            self._gym: Any = importlib.import_module("gymnasium")
            self._upstream: Any = importlib.import_module("browsergym.core.action.highlevel")
        except ImportError as error:
            raise ConfigError(
                f"browsergym: no module '{error.name}' in this Python; install browsergym-"
                f"{benchmark} there"
            ) from error
        if browser:  # BrowserGym starts two, and lets one be chosen
            kind: Any = importlib.import_module("playwright.sync_api").BrowserType
            kind.launch = functools.partialmethod(kind.launch, executable_path=browser)
        found = sorted(id for id in self._gym.registry if id.startswith(self._prefix))
        self.tasks = tuple(id.removeprefix(self._prefix) for id in found)

    @property
    def name(self) -> str:
        return self._prefix[:-1]

    async def begin(self, task: str, rng: random.Random) -> str:
        await self._blocking(f"set up {task}", lambda: self._open(task))
        told = [part["text"] for part in self._seen["goal_object"] if part["type"] == "text"]
        return "\n".join(told)

    def screen(self) -> Observation:
        found = list(elements(self._seen))[:MOST_ELEMENTS]
        self._ids = [id for _, id in found]
        return Observation(
            goal="",
            elements=tuple(element for element, _ in found),
            app=str(self._seen["open_pages_titles"][int(self._seen["active_page_index"][0])]),
            png=as_png(self._seen["screenshot"]) if self._screenshots else None,
        )

    async def act(self, action: Action, element: Any) -> Acted:
        call = written(action, element, "" if element is None else self._ids[element.index])
        step = await self._blocking(call, lambda: self._env.step(call))
        self._seen, reward, ended, cut = step[:4]
        if ended or cut:
            return Done(reward=float(reward), truncated=bool(cut))
        return str(self._seen["last_action_error"]).partition("\n")[0]

    async def end(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            await self._blocking("close", env.close)

    def _open(self, task: str) -> None:
        subsets = ["chat", "infeas", "bid", "nav", "coord"]
        functions = self._upstream.HighLevelActionSet(subsets=subsets)
        self._env = self._gym.make(
            self._prefix + task,
            action_mapping=lambda call: f"{functions.python_includes}\n{call}",
            pre_observation_delay=0.5,  # seconds after an action
        ).unwrapped
        self._seen, _ = self._env.reset(seed=self.seed)

    async def _blocking(self, doing: str, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except Exception as error:
            raise EnvironmentFault(f"{self.name}, {doing}: {error!r}") from error


def written(action: Action, element: Element | None, id: str) -> str:
    """The call of BrowserGym's function for an action on an element, which it knows by this id."""
    text, kind = action.text or "", action.action_type
    if kind in ("click", "select") and element is not None and element.role == "option":
        return f"select_option({id!r}, {element.text!r})"
    key = KEYS.get(action.keycode or "KEYCODE_ENTER", "Enter")
    x, y = AHEAD[action.direction or "down"]
    lost = kind == "status" and action.goal_status == "infeasible"
    return {
        "click": f"click({id!r})",
        "double_tap": f"dblclick({id!r})",
        "input_text": f"fill({id!r}, {text!r})",
        "select": f"select_option({id!r}, {text!r})",
        "scroll": f"scroll({500 * x}, {500 * y})",
        "keyboard_enter": f"press({id!r}, {key!r})" if id else f"keyboard_press({key!r})",
        "navigate_back": "go_back()",
        "answer": f"send_msg_to_user({text!r})",
        "status": "report_infeasible('infeasible')" if lost else "send_msg_to_user('done')",
    }.get(kind, "noop()")


def elements(seen: Mapping[str, Any]) -> Iterator[tuple[Element, str]]:
    """The visible elements of an observation of BrowserGym, in reading order, and the id by which
    its actions name each of them. A closed list does not paint its options, so they are where it
    is."""
    nodes = {node["nodeId"]: node for node in seen["axtree_object"]["nodes"]}
    heads = [node for node in nodes.values() if node.get("parentId") not in nodes]
    stack: list[tuple[Any, str, str]] = [(node, "", "") for node in reversed(heads)]
    while stack:
        node, holder, choices = stack.pop()
        id, role = node.get("browsergym_id") or "", node["role"]["value"]
        at = choices or (holder if role == "StaticText" else id)
        shown = seen["extra_element_properties"].get(at or holder, {})
        children = [nodes[child] for child in node.get("childIds", ()) if child in nodes]
        kind = ROLES.get(role)
        if role in _CHOICES:
            kind, choices = "field", id
        elif choices:
            kind = "option" if role == "option" else None
        elif role == "StaticText":
            kind = "text" if str(node.get("name", {}).get("value", "")).strip() else None
        elif kind is None and shown.get("clickable") and not children:
            kind = "shape"
        if kind is not None and at and shown.get("visibility", 0.0) >= VISIBLE:
            yield _element(node, kind, shown), at
        if kind in ACTABLE and role not in _CHOICES:
            continue
        if kind in WHOLE and not choices:
            children = [one for one in children if one["role"]["value"] != "StaticText"]
        stack += [(child, id or holder, choices) for child in reversed(children)]


def _element(node: dict[str, Any], role: Role, shown: Mapping[str, Any]) -> Element:
    """An element with the states that its node has."""
    told = facts(node)
    checked, field = told.get("checked"), role == "field"
    left, top, width, height = map(round, shown.get("bbox") or (0, 0, 0, 0))
    return Element(
        role=role,
        text=told["name"],
        value=(told["value"] or "") if field else None,
        checked=None if checked is None else checked in (True, "true"),
        selected=told.get("selected"),
        clickable=role not in _READ or bool(shown.get("clickable")),
        editable=field,
        enabled=not told.get("disabled", False),
        focused=bool(told.get("focused", False)),
        bounds=(left, top, left + width, top + height) if shown.get("bbox") else None,
    )
