"""One tab of a browser: its page, its requests, and its commands."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, NamedTuple

from swarm_ui.environments.miniwob.cdp import Connection, Rejected, Reply, Unanswered
from swarm_ui.environments.web.hosts import AllowedHosts
from swarm_ui.errors import EnvironmentFault

_ENDLESS = ("EventSource", "WebSocket", "Ping", "Preflight")
_CANCELLED = "net::ERR_ABORTED"


class ScriptError(Rejected):
    """A script failed in the page."""


class Failed(NamedTuple):
    """A page that could not be opened."""

    url: str
    error: str

    def __str__(self) -> str:
        return f"{self.url[:500]} cannot be opened: {self.error}"


class _Request(NamedTuple):
    url: str
    document: bool
    """Whether it is the main page, not a frame."""
    loader: str
    began: float


class Tab:
    """A tab. Its calls raise :class:`EnvironmentFault` if the page crashed or does not answer."""

    def __init__(
        self, connection: Connection, target: str, session: str, allowed: AllowedHosts
    ) -> None:
        self._connection, self._session, self._allowed = connection, session, allowed
        self.target = target
        self.title = self.url = ""
        self.dialogs: list[str] = []
        """Texts of the dialogs that the page showed; they were accepted."""
        self.refused: list[str] = []
        """URLs of refused requests, in order."""
        self.failure: Failed | None = None
        """The page that could not be opened, though its host is allowed."""
        self.status = 0
        """HTTP status of the page; 0 if it is not known."""
        self._crash = ""
        self._frames: set[str] = {target}
        self._loading: set[str] = set()
        self._requests: dict[str, _Request] = {}
        connection.listen(session, self._event)

    @classmethod
    async def attach(
        cls, connection: Connection, target: str, size: tuple[int, int], allowed: AllowedHosts
    ) -> Tab:
        """Take over the tab of a target."""
        reply = await connection.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = cls(connection, target, reply["sessionId"], allowed)
        width, height = size
        try:
            await asyncio.gather(
                tab.call("Page.enable"),
                tab.call("Network.enable"),
                tab.call("DOM.enable"),
                tab.call("Inspector.enable"),
                tab.call("Emulation.setFocusEmulationEnabled", enabled=True),
                tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                         deviceScaleFactor=1, mobile=False),
            )  # fmt: skip
        except BaseException:  # re-raised: nobody else knows the tab
            tab.forget("the tab could not be opened")
            raise
        return tab

    @property
    def crashed(self) -> bool:
        return bool(self._crash) or self._connection.lost

    @property
    def loading(self) -> bool:
        """Whether a page or a frame is loading."""
        return bool(self._loading)

    def busy(self, horizon: float) -> bool:
        """Whether something is loading that began before a time of the event loop."""
        return self.loading or any(one.began < horizon for one in self._requests.values())

    def owns(self, frame: str) -> bool:
        return frame in self._frames

    async def call(self, method: str, **params: object) -> Reply:
        """Send a DevTools command to the page. Raises ``Rejected`` if the browser cannot do it."""
        if self._crash:
            raise EnvironmentFault(f"{method}: {self._crash}")
        return await self._connection.call(method, self._session, **params)

    async def drawn(self, waiting: Any) -> None:
        """Wait for a mouse event to be sent. No frame is requested: the browser draws by itself."""
        await waiting

    async def navigate(self, url: str) -> None:
        """Begin to open a page. If the browser refuses the address, or the server does not answer,
        this is the :attr:`failure`."""
        self.failure, self.status = None, 0
        try:
            await self.call("Page.navigate", url=url)
        except Rejected as error:
            self.failure = Failed(url, str(error))
        except Unanswered:
            self.failure = Failed(url, "net::ERR_TIMED_OUT")
            await self.call("Page.stopLoading")

    async def travel(self, places: int) -> bool:
        """Go back (-1) or forward (1) in the tab's history; return whether this was possible."""
        history = await self.call("Page.getNavigationHistory")
        at = history["currentIndex"] + places
        entries = history["entries"]
        if not 0 <= at < len(entries) or entries[at]["url"] == "about:blank":
            return False
        self.failure = None
        await self.call("Page.navigateToHistoryEntry", entryId=entries[at]["id"])
        return True

    async def on_node(self, node: int, function: str, *arguments: object) -> Any:
        """The result of a JavaScript function that is called with an element as ``this``.

        Raises:
            Rejected: the element is gone.
        """
        found = await self.call("DOM.resolveNode", backendNodeId=node, objectGroup="swarm-ui")
        reply = await self.call(
            "Runtime.callFunctionOn",
            functionDeclaration=function,
            objectId=found["object"]["objectId"],
            arguments=[{"value": value} for value in arguments],
            returnByValue=True,
            userGesture=True,
        )
        return _value(reply)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, which sees the page's document.

        It runs in an isolated world: the page's scripts can neither see nor change it.

        Raises:
            ScriptError: the expression fails.
        """
        world = await self.call("Page.createIsolatedWorld", frameId=self.target, worldName="ours")
        reply = await self.call(
            "Runtime.evaluate",
            expression=expression,
            contextId=world["executionContextId"],
            returnByValue=True,
            awaitPromise=True,
        )
        return _value(reply)

    async def picture(self) -> bytes:
        """The visible part of the page as a PNG file."""
        reply = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(reply["data"])

    def forget(self, reason: str) -> None:
        """Release the tab, which was closed."""
        self._crash = self._crash or reason
        self._connection.forget(self._session, reason)

    # -- events -------------------------------------------------------------------------------

    def _event(self, method: str, params: Reply) -> None:
        if method.startswith("Network."):
            self._network(method, params)
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(str(params["message"])[:1000])
            given = {"accept": True, "promptText": params.get("defaultPrompt", "")}
            self._connection.post("Page.handleJavaScriptDialog", self._session, **given)
        elif method == "Page.frameStartedLoading":
            self._loading.add(params["frameId"])
        elif method == "Page.frameStoppedLoading":
            self._loading.discard(params["frameId"])
        elif method == "Page.frameNavigated" and "parentId" not in params["frame"]:
            loader = params["frame"]["loaderId"]  # requests of the page before may never end
            old = [key for key, one in self._requests.items() if one.loader != loader]
            for key in old:
                del self._requests[key]
        elif method == "Page.frameAttached":
            self._frames.add(params["frameId"])
        elif method == "Page.frameDetached":
            self._loading.discard(params["frameId"])
            if params.get("reason") != "swap":
                self._frames.discard(params["frameId"])
        elif method in ("Inspector.targetCrashed", "Inspector.detached"):
            self.forget(f"the page {self.url} crashed")

    def _network(self, method: str, params: Reply) -> None:
        key = params.get("requestId", "")
        if method == "Network.requestWillBeSent":
            url, kind = params["request"]["url"], params.get("type", "")
            self._refuse(url)
            if kind not in _ENDLESS and not url.startswith(("data:", "blob:")):
                document = kind == "Document" and params.get("frameId") == self.target
                began = asyncio.get_running_loop().time()
                self._requests[key] = _Request(url, document, params.get("loaderId", ""), began)
        elif method == "Network.webSocketCreated":
            self._refuse(params["url"])
        elif method == "Network.responseReceived":
            if key in self._requests and self._requests[key].document:
                self.status = int(params["response"]["status"])
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            request, error = self._requests.pop(key, None), params.get("errorText", "")
            failed = error and error != _CANCELLED and not params.get("canceled")
            if request and request.document and failed and self._allowed.allows(request.url):
                self.failure = Failed(request.url, error)

    def _refuse(self, url: str) -> None:
        if not self._allowed.allows(url):
            self.refused.append(url[:500])


def _value(reply: Reply) -> Any:
    if "exceptionDetails" in reply:
        details = reply["exceptionDetails"]
        said = details.get("exception", {}).get("description", details.get("text"))
        raise ScriptError(f"a script in the page failed: {said}")
    return reply["result"].get("value")
