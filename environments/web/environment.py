"""Tasks on any web site behind the environment contract."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.base import Done, Episodic, missing
from swarm_ui.environments.web import acting
from swarm_ui.environments.web.browser import Rejected, Tab
from swarm_ui.environments.web.hosts import origin, web_url
from swarm_ui.environments.web.reading import Seen, read
from swarm_ui.environments.web.session import Session, WebBrowser
from swarm_ui.environments.web.task import Reward, Visit, WebTask, result
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Geometry, Observation

WEB_ACTIONS: tuple[ActionType, ...] = (
    "click", "double_tap", "long_press", "input_text", "select", "scroll", "swipe",
    "keyboard_enter", "navigate_back", "navigate_home", "open_app", "wait", "answer", "status",
)  # fmt: skip
"""Every kind of action; each does something on a web site."""
_READS = 3


class WebView(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a page, and the contents of observations."""

    size: tuple[int, int] = (1280, 800)
    """Width and height of the page in pixels."""
    screenshots: bool = False
    """Add a ``png`` to observations."""
    geometry: Geometry = ""
    """``"box"``: with element bounds in texts (``Observation.geometry``)."""


class WebEnvironment(Episodic):
    """Any web site in a real Chromium, which reaches the allowed hosts and no other.

    >>> async def bought(visit: Visit) -> bool:
    ...     return "Thank you" in await visit.text()
    >>> environment = WebEnvironment("https://shop.example", "Buy a pint of milk", reward=bought)

    The observation lists the browser's bar and then the page: tabs (click one to switch), "New
    tab", "Close tab" and the field "Address" (type a URL to open it). Frames and shadow roots are
    part of the page. Elements in the window, and up to half a window around it, are listed. The
    number of other elements is given; ``scroll`` lists them.

    The other actions:

    - ``click``, ``double_tap``, ``long_press`` (hover), ``swipe`` (drag) and ``input_text`` use the
      mouse and the keyboard; ``select``, or a click on it, chooses an option by its text;
    - ``input_text`` sets a slider or a date, and with a path on a file input uploads a file of the
      folder ``uploads``;
    - ``scroll`` moves by 80 % of the window, or of the element with that ``index``;
    - ``navigate_back`` is the browser's back, ``navigate_home`` opens the first page of the task,
      ``open_app`` opens the URL in ``app_name`` in the active tab;
    - ``keyboard_enter`` presses Enter, or the key that ``keycode`` names;
    - ``answer`` gives an answer, and the last one counts; ``status`` ends the episode.

    The reward function is called once, when the agent declares ``complete``; without it, the reward
    is 0. A site that is down, a page that crashes or hangs, or a reward function that fails is a
    fault; a refused host is only told in a note.
    """

    name = "web (real sites)"
    actions = WEB_ACTIONS

    def __init__(
        self,
        url: str = "",
        task: str = "",
        *,
        reward: Reward | None = None,
        tasks: Mapping[str, WebTask] | None = None,
        allowed: Iterable[str] = (),
        browser: WebBrowser | None = None,
        budget: int = 30,
        uploads: Path | None = None,
        view: WebView = WebView(),  # noqa: B008 (a record that cannot change)
    ) -> None:
        """
        Args:
            url: the page that is open when an episode starts; its host is allowed.
            task: the goal; it is also the name of the task.
            reward: returns whether an episode succeeded.
            tasks: several tasks by name, instead of ``url``, ``task`` and ``reward``.
            allowed: further hosts, see :class:`~swarm_ui.environments.web.hosts.AllowedHosts`.
            browser: a browser that other environments may share; its own allowed hosts apply. By
                default the environment starts a separate browser.
            budget: maximum number of actions in an episode.
            uploads: the folder whose files agents may upload; ``None``: nothing can be uploaded.
            view: the size of the page, and the contents of observations.

        Raises:
            ConfigError: the arguments do not fit together, or a host is not allowed.
        """
        if tasks is None and url and task and reward:
            tasks = {task: WebTask(url=url, goal=task, reward=reward)}
        elif not tasks or url or task or reward:
            raise ConfigError("WebEnvironment: give 'url', 'task' and 'reward', or only 'tasks'")
        starts = [web_url(one.url) for one in tasks.values()]
        self._own = browser is None
        self._browser = browser or WebBrowser([*starts, *allowed])
        for start in starts:
            if not self._browser.allowed.allows(start):
                raise ConfigError(
                    f"WebEnvironment: the browser does not allow {start}; it allows "
                    f"{self._browser.allowed}"
                )
        for one in tasks.values():
            if one.storage_state is not None and not one.storage_state.is_file():
                raise ConfigError(f"WebEnvironment: there is no file {one.storage_state}")
        self._tasks, self.tasks, self.budget = dict(tasks), tuple(tasks), budget
        self._view, self._uploads = view, uploads
        self.session: Session | None = None
        """The tabs and downloads of the episode; ``None`` before the first one."""
        self._shown: Observation | None = None
        """The screen as last read; not what the reward function opened."""
        self._seen = Seen((), (), "", 0, 0)
        self._bar: Sequence[Callable[[], Awaitable[object]]] = ()
        """What a click on each element of the browser's bar does; they come first."""
        self._tabs: tuple[Tab, ...] = ()
        """The tabs of the last observation; the active one comes first."""
        self._answer: str | None = None

    async def begin(self, task: str, rng: random.Random) -> str:
        self._task, self._answer = self._tasks[task], None
        await self._end_session()
        if self._task.prepare is not None:
            await result(self._task, self._task.prepare, self.seed)
        state, home = self._task.storage_state, web_url(self._task.url)
        self.session = session = await self._browser.session(self._view.size, state)
        await session.open(home)
        session.take_notes()
        self._shown = await self._observe(session)
        # The start page may redirect to the address where the site really is.
        session.home = {origin(home), origin(session.front.url)}
        return self._task.goal

    def screen(self) -> Observation:
        assert self._shown is not None  # an episode has begun
        return self._shown

    def misfit(self, action: Action, screen: Observation) -> str:
        width, height = self._view.size
        places = (action.x, width), (action.y, height), (action.to_x, width), (action.to_y, height)
        for value, most in places:
            if value is not None and not 0 <= value < most:
                return f"{value:.10g} is outside of the window of {width} by {height} pixels"
        return acting.unknown_key(action) or missing(action, screen)

    async def act(self, action: Action, element: Element | None) -> Done | str:
        session = self.session
        assert session is not None  # an episode has begun
        if action.action_type == "status":
            return Done(await self._judge(session, action))
        if action.action_type == "answer":
            self._answer = action.text
            return ""
        note = await self._act(session, action)
        await session.settled()
        notes = note, session.take_notes()
        self._shown = await self._observe(session)
        return "; ".join(filter(None, notes))

    async def close(self) -> None:
        await super().close()
        await self._end_session()
        if self._own:
            await self._browser.close()

    async def _end_session(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()

    async def _judge(self, session: Session, action: Action) -> float:
        if action.goal_status == "infeasible" or self._task.infeasible:
            return float(self._task.infeasible and action.goal_status == "infeasible")
        await session.keep_tab()
        value = await result(self._task, self._task.reward, Visit(session, self._answer))
        if value not in (0, 1):
            raise EnvironmentFault(
                f"the reward of {self._task.goal!r} must be True, False, 0 or 1, got {value!r}"
            )
        return float(value)

    async def _act(self, session: Session, action: Action) -> str:
        """Do an action; return why it failed, or ``""``."""
        # A page may open or close tabs while the agent thinks, even the last one; the indices and
        # places of the action belong to the tabs that it saw.
        if not session.tabs or (session.front, *session.tabs) != self._tabs:
            return "nothing was done: the tabs have changed since the screen was read"
        kind, bar = action.action_type, [k for k in action.targets if k <= len(self._bar)]
        if kind == "input_text" and bar == [len(self._bar)]:
            return await self._open(session, action.text)
        if bar and (kind != "click" or bar == [len(self._bar)]):
            return "nothing happens: it is a part of the browser, not of the page"
        if bar:
            await self._bar[bar[0]]()
            return ""
        if kind == "navigate_back":
            return "" if await session.front.back() else "there is no page to go back to"
        if kind in ("navigate_home", "open_app"):
            address = self._task.url if kind == "navigate_home" else action.app_name
            return await self._open(session, address)
        return await acting.act(session.front, action, self._seen, self._uploads)

    async def _open(self, session: Session, address: str | None) -> str:
        try:
            url = web_url(address or "")
        except ConfigError as error:
            return str(error)
        if not self._browser.allowed.allows(url):
            return f"refused: {url[:500]} (allowed: {self._browser.allowed})"
        await session.navigate(url)
        return ""

    async def _observe(self, session: Session) -> Observation:
        tab, seen, view = session.front, await self._read(session), self._view
        tab.title, self._tabs = seen.title, (tab, *session.tabs)
        tabs = [Element(role="tab", text=t.title or t.url, selected=t is tab) for t in session.tabs]
        more = {"New tab": session.new_tab}
        if len(tabs) > 1:
            more["Close tab"] = session.close_tab
        self._bar = [*(partial(session.switch, t) for t in session.tabs), *more.values()]
        bar = [*tabs, *map(Element.button, more), Element.field("Address", tab.url)]
        files = [Element.line(f"Downloaded {name}") for name in session.downloads]
        listed = enumerate((*bar, *seen.elements, *files))
        elements = tuple(replace(element, index=k) for k, element in listed)
        self._seen = seen._replace(
            elements=elements, nodes=(-1,) * len(bar) + seen.nodes + (-1,) * len(files)
        )
        png = await tab.done(tab.page.screenshot()) if view.screenshots else None
        return Observation(
            goal="",
            elements=elements,
            app=tab.title or tab.url,
            png=png,
            more=(seen.above, seen.below) if seen.above or seen.below else None,
            geometry=view.geometry,
        )

    async def _read(self, session: Session) -> Seen:
        """Read the page; a page that changes meanwhile is read again."""
        for _ in range(_READS - 1):
            try:
                return await read(session.front, self._view.size)
            except Rejected:
                await session.settled()
        return await read(session.front, self._view.size)
