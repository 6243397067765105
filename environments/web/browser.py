"""Find, start and end a Chromium. Playwright drives it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, ViewportSize

BROWSER_VARIABLE = "SWARM_UI_BROWSER"
INSTALL_HINT = (
    "No Chromium found. Install one (Debian: apt-get install chromium-headless-shell, or "
    f"chromium; elsewhere: Google Chrome), or set {BROWSER_VARIABLE} to its path."
)
CALL_TIMEOUT = 20.0
"""Seconds a browser may take to answer."""

# The launcher scripts in /usr/bin add flags of the distribution, so the binaries are tried first.
_PLACES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "/usr/lib/chromium/chromium",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_FLAGS = ("--disable-gpu", "--disable-domain-reliability", "--no-pings")

Reply = dict[str, Any]
T = TypeVar("T")


class Rejected(EnvironmentFault):
    """The browser rejected a command, such as one on a removed element."""


class ScriptError(Rejected):
    """A script failed in the page."""


class Unanswered(EnvironmentFault):
    """The browser did not answer in time."""


async def answered(waiting: Awaitable[T], crash: asyncio.Future[None] | None = None) -> T:
    """The result of a call of Playwright. ``crash`` is done when the page has crashed, after which
    there is no answer.

    Raises:
        Rejected: the browser answers with an error.
        Unanswered: it does not answer in ``CALL_TIMEOUT`` seconds.
        EnvironmentFault: the page or the browser is gone.
    """
    from playwright.async_api import Error

    call = asyncio.ensure_future(waiting)
    ends: set[asyncio.Future[Any]] = {call} if crash is None else {call, crash}
    try:
        done, _ = await asyncio.wait(
            ends, timeout=CALL_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
        )
        if call in done:
            return call.result()
    except Error as error:
        told = error.message.partition("\n")[0]  # without the browser's log
        gone = any(word in told for word in ("closed", "crashed", "detached"))
        raise (EnvironmentFault if gone else Rejected)(f"the browser answered: {told}") from error
    finally:
        call.cancel()
    if done:
        raise EnvironmentFault("the page crashed")
    raise Unanswered(f"the browser gave no answer in {CALL_TIMEOUT:.0f} s")


class Tab:
    """A tab of the browser, for Playwright and for DevTools. Its calls end with a fault when the
    page crashes or does not answer."""

    title = ""
    status = 0
    """HTTP status of the page; 0 if it is not known."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._devtools: CDPSession | None = None
        self._crash: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        page.once("crash", lambda page: self._crash.set_result(None))

    @property
    def url(self) -> str:
        return whole(self.page.url)

    @property
    def crashed(self) -> bool:
        return self._crash.done()

    async def done(self, waiting: Awaitable[T]) -> T:
        """The result of any call of Playwright about the page; see :func:`answered`."""
        return await answered(waiting, self._crash)

    async def call(self, method: str, **params: object) -> Reply:
        """Send a DevTools command to the page; see :func:`answered`."""
        if self._devtools is None:
            self._devtools = await self.done(self.page.context.new_cdp_session(self.page))
        return await self.done(self._devtools.send(method, params))

    async def back(self) -> bool:
        """Go back in the tab's history; return whether this was possible."""
        history = await self.call("Page.getNavigationHistory")
        before = history["entries"][: history["currentIndex"]]
        if not before or before[-1]["url"] == "about:blank":
            return False
        await self.call("Page.navigateToHistoryEntry", entryId=before[-1]["id"])
        return True

    async def on_node(self, node: int, function: str, *arguments: object) -> Any:
        """The result of a JavaScript function that is called with an element as ``this``.

        Raises:
            Rejected: the element is gone.
        """
        found = await self.call("DOM.resolveNode", backendNodeId=node, objectGroup="swarm-ui")
        return await self.function(found["object"]["objectId"], function, *arguments)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, which sees the page's document.

        It runs in an isolated world: the page's scripts can neither see nor change it.

        Raises:
            ScriptError: the expression fails.
        """
        frame = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        world = await self.call("Page.createIsolatedWorld", frameId=frame, worldName="ours")
        context = world["executionContextId"]
        return await self._script("evaluate", expression=expression, contextId=context)

    async def function(self, owner: str, function: str, *arguments: object) -> Any:
        """The result of a JavaScript function, which may be ``async`` and runs as if the user had
        acted. ``owner`` is DevTools' name of the object that is ``this``; ``arguments`` are data
        that JSON can hold."""
        given: Any = {"objectId": owner, "arguments": [{"value": value} for value in arguments]}
        return await self._script(
            "callFunctionOn", functionDeclaration=function, userGesture=True, **given
        )

    async def _script(self, method: str, **params: object) -> Any:
        params |= {"returnByValue": True, "awaitPromise": True}
        reply = await self.call(f"Runtime.{method}", **params)
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            said = details.get("exception", {}).get("description", details.get("text"))
            raise ScriptError(f"a script in the page failed: {said}")
        value = reply["result"].get("value")
        return whole(value) if isinstance(value, str) else value


def whole(text: str) -> str:
    """A text in which each half of a character, such as an emoji that a page cut off, is U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find_browser() -> Path | None:
    """The Chromium to use: ``$SWARM_UI_BROWSER``, else the smallest installed one, else ``None``.

    Raises:
        ConfigError: the variable is set and names no executable.
    """
    chosen = os.environ.get(BROWSER_VARIABLE)
    found = next(filter(None, map(shutil.which, [chosen] if chosen else _PLACES)), None)
    if chosen and found is None:
        raise ConfigError(f"{BROWSER_VARIABLE}={chosen!r}: no such executable")
    return None if found is None else Path(found)


class Chromium:
    """A Chromium, which starts when it is needed, and again when it has died.

    It ends with this process, however that ends: Playwright's driver waits for the end of a pipe.
    ``flags`` are added to the command line of :func:`find_browser`.
    """

    def __init__(self, *, flags: Sequence[str] = ()) -> None:
        self._flags = flags
        self._running = contextlib.AsyncExitStack()
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self.downloads = Path()
        """The folder of the running browser's downloads."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def context(self, size: tuple[int, int], state: Path | None = None) -> BrowserContext:
        """A new profile, whose pages have a size in pixels; ``state``: a file of Playwright's with
        its cookies and local storage.

        Raises:
            ConfigError: no browser is installed.
            EnvironmentFault: the browser does not start, or gives no profile.
        """
        browser = await self.start()
        shape: ViewportSize = {"width": size[0], "height": size[1]}
        return await answered(browser.new_context(viewport=shape, storage_state=state))

    async def start(self) -> Browser:
        """The running browser; starts one if there is none."""
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.close()
                try:
                    self._browser = await self._launched()
                except BaseException:  # re-raised: a cancelled start leaves no process behind
                    await self.close()
                    raise
            return self._browser

    async def _launched(self) -> Browser:
        binary = find_browser()
        if binary is None:
            raise ConfigError(INSTALL_HINT)
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise MissingExtra("web", "a browser", "playwright") from error

        folder = tempfile.TemporaryDirectory(
            prefix="swarm-ui-downloads-", ignore_cleanup_errors=True
        )
        self.downloads = Path(self._running.enter_context(folder))
        driver = await self._running.enter_async_context(async_playwright())
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium has no sandbox for root
        try:
            return await driver.chromium.launch(
                executable_path=binary,
                args=[*_FLAGS, *self._flags],
                chromium_sandbox=not root,
                downloads_path=self.downloads,
                handle_sigint=False,  # an interrupted run ends its episodes first
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise EnvironmentFault(f"cannot start {binary}: {str(error)[-1000:]}") from error

    async def close(self) -> None:
        """End the browser; safe to call twice."""
        self._browser = None
        await self._running.aclose()  # the end of the driver ends the browser
