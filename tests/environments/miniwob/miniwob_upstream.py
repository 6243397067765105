"""Our acts, done in upstream's own MiniWoB++ environment (gymnasium, Selenium, chromedriver)."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from miniwob_player import bounds, centre

from swarm_ui.action import Action
from swarm_ui.environments.miniwob.page import WINDOW
from swarm_ui.observation import Element, Observation

DRIVER = shutil.which("chromedriver")
# Debian's launcher adds flags of its own, so the binary itself comes first.
CHROMIUM = shutil.which("/usr/lib/chromium/chromium") or shutil.which("google-chrome")

KEYS = {
    "KEYCODE_TAB": "\ue004",
    "KEYCODE_ENTER": "\ue006",
    "KEYCODE_PAGE_UP": "\ue00e",
    "KEYCODE_PAGE_DOWN": "\ue00f",
    "KEYCODE_DPAD_UP": "\ue013",
    "KEYCODE_DPAD_DOWN": "\ue015",
}
CHOOSE = """
const [name] = arguments, options = [...document.querySelectorAll('option')];
const option = options.find((o) => o.text.trim() === name), select = option.closest('select');
option.selected = select.multiple ? !option.selected : true;
select.dispatchEvent(new Event('change', { bubbles: true }));
"""
SCROLL = """
const [x, y, end] = arguments, at = document.elementFromPoint(x, y);
const area = at.closest('textarea') || document.scrollingElement;
area.scrollTop = end === 'down' ? area.scrollHeight : 0;
area.dispatchEvent(new Event('scroll'));
"""


@contextmanager
def selenium_environment() -> Iterator[Upstream]:
    """Upstream's environment in a browser of its own, without its talk to other hosts."""
    names = {
        "MINIWOB_CHROME_BINARY": str(CHROMIUM),
        "MINIWOB_CHROMEDRIVER": str(DRIVER),
        "SE_OFFLINE": "true",
        "SE_AVOID_STATS": "true",
    }
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    import gymnasium
    import miniwob

    gymnasium.register_envs(miniwob)
    env = gymnasium.make("miniwob/click-test-v1", disable_env_checker=True)
    try:
        yield Upstream(env.unwrapped, Path(miniwob.__file__).parent / "html" / "miniwob")
    finally:
        env.close()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class Upstream:
    """One browser, moved from task to task: a new one takes two seconds to start."""

    def __init__(self, env: Any, pages: Path) -> None:
        self._env = env
        self._pages = pages
        self._seen: dict[str, Any] = {}
        env.set_record_screenshots(False)
        # The window our pages have. Upstream's is 800 × 600 and shows scroll bars, which moves
        # dialogs and whatever stands beside a scroll bar.
        width, height = WINDOW
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        env.instance.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        env.instance.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

    def start(self, task: str, seed: int) -> tuple[str, dict[str, str]]:
        """Goal and fields of an episode on a fresh page, without the page's clock."""
        from miniwob.fields import get_field_extractor

        instance = self._env.instance
        instance.url = (self._pages / f"{task}.html").as_uri()
        instance.field_extractor = get_field_extractor(task)
        instance.driver.get(instance.url)
        instance.driver.execute_script("core.EPISODE_MAX_TIME = 1e8;")
        self._seen, self._info = self._env.reset(seed=seed)
        return self._seen["utterance"], dict(self._seen["fields"])

    @property
    def outcome(self) -> tuple[bool, float]:
        """Whether the episode has ended, and its raw reward."""
        told = self._env.instance.get_metadata()
        return bool(told["done"]), float(told["raw_reward"]) if told["done"] else 0.0

    def act(self, action: Action, screen: Observation) -> None:
        """An action of ours on the screen that it was made for."""
        kind, element = action.action_type, screen.element(action.index)
        at = centre(element) if element else (float(action.x or 0), float(action.y or 0))
        if kind == "wait":
            time.sleep(0.5)
        elif kind == "scroll":
            self._script(SCROLL, *at, action.direction)
        elif kind == "select" or (element and element.role == "option"):
            assert element is not None
            self._script(CHOOSE, element.text)
        elif kind == "keyboard_enter":
            self._keys(KEYS[action.keycode or "KEYCODE_ENTER"])
        elif kind == "long_press":
            self._do("MOVE_COORDS", coords=at)
        elif kind == "swipe":
            self._drag(at, _end(action, at, element, screen))
        elif kind == "input_text":
            self._write(action.text or "", at, element)
        elif kind == "double_tap":
            self._do("DBLCLICK_COORDS", coords=at)
        elif element is None or element.role == "shape":  # it tells a shape no coordinates
            self._do("CLICK_COORDS", coords=at)
        else:
            self._do("CLICK_ELEMENT", ref=self._ref(element))
        if not self.outcome[0]:
            self._rest()
            self._seen = self._env.instance.get_observation(use_cached_fields=True)[0]

    def _rest(self) -> None:
        """Wait until nothing moves; our pages have no animations."""
        moving = "return Boolean(window.jQuery && jQuery(':animated').length)"
        deadline = time.monotonic() + 5
        while self._script(moving) and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._script("return Boolean(document.querySelector('.ui-autocomplete-input'))"):
            time.sleep(0.4)  # suggestions come 300 ms after the last key; with us at once

    def _write(self, text: str, at: tuple[float, float], element: Element | None) -> None:
        """Typing by reference: the focus, the keys, and leaving the field."""
        if element is None:
            self._do("CLICK_COORDS", coords=at)
            return self._keys(text)
        self._script("core.previousDOMInfo[arguments[0]].focus()", self._ref(element))
        self._script("if (document.activeElement.select) document.activeElement.select()")
        self._keys(_typed(text, str(self._script("return document.activeElement.type"))))
        self._script("document.activeElement.blur()")  # it has changed; a real click leaves it too

    def _keys(self, text: str) -> None:
        from miniwob.selenium_actions import execute_type_text

        execute_type_text(text, self._env.instance.driver)

    def _drag(self, at: tuple[float, float], to: tuple[float, float]) -> None:
        self._do("MOUSEDOWN_COORDS", coords=at)
        for step in range(1, 13):
            share = step / 12
            x, y = (a + share * (b - a) for a, b in zip(at, to, strict=True))
            self._do("MOVE_COORDS", coords=(x, y))
        self._do("MOVE_COORDS", coords=to)
        self._do("MOUSEUP_COORDS", coords=to)

    def _do(self, kind: str, **fields: Any) -> None:
        from miniwob.action import ActionTypes

        self._env.step(self._env.create_action(ActionTypes[kind], **fields))

    def _script(self, code: str, *arguments: object) -> Any:
        return self._env.instance.driver.execute_script(code, *arguments)

    def _ref(self, element: Element) -> int:
        """Upstream's number of an element of ours: the same words, and nearest to its place."""

        told = "" if element.value is not None or element.checked is not None else element.text

        def far(other: Mapping[str, Any]) -> tuple[bool, float]:
            left, top = float(other["left"][0]), float(other["top"][0])
            right, bottom = left + float(other["width"][0]), top + float(other["height"][0])
            theirs = (left, top, right, bottom)
            words = " ".join(str(other["text"]).split())
            apart = sum(abs(a - b) for a, b in zip(theirs, bounds(element), strict=True))
            return (bool(told) and words != told, apart)

        real = [other for other in self._seen["dom_elements"] if int(other["ref"]) > 0]
        return int(min(reversed(real), key=far)["ref"])  # the innermost of equals


def _end(
    action: Action, at: tuple[float, float], element: Element | None, screen: Observation
) -> tuple[float, float]:
    """Where a drag of ours ends: see ``aim`` in page_acts.js."""
    if action.to_x is not None and action.to_y is not None:
        return (action.to_x, action.to_y)
    other = screen.element(action.to_index)
    if other is not None:
        x, y = centre(other)
        far = math.dist(at, (x, y)) or 1.0
        return (x + 4 * (x - at[0]) / far, y + 4 * (y - at[1]) / far)
    assert element is not None
    left, top, right, bottom = bounds(element)
    dx, dy = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[
        action.direction or "down"
    ]
    return (at[0] + dx * (right - left), at[1] + dy * (bottom - top))


def _typed(text: str, kind: str) -> str:
    """The keys for a text: a date or time field goes on to its next part by itself."""
    if kind == "date":
        return "".join(part.zfill(2) for part in text.split("/"))
    if kind == "time" and ":" in text:
        hour, rest = text.split(":")
        return hour.zfill(2) + rest.replace(" ", "")
    return text
