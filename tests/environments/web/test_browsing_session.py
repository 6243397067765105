"""Tabs that come and go while the browser is asked about them; without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swarm_ui.environments.miniwob.cdp import Connection, Rejected, Reply
from swarm_ui.environments.web import browsing_session
from swarm_ui.environments.web.browsing_session import MOST_DOWNLOADS, Session
from swarm_ui.environments.web.hosts import AllowedHosts
from swarm_ui.errors import EnvironmentFault

ALLOWED = AllowedHosts(["shop.example"])
POPUP = "popup"


class FakeBrowser(Connection):
    """Answers every command; ``before`` runs before each answer, and may refuse the command."""

    def __init__(self) -> None:
        super().__init__()
        self.session: Session
        self.before: Callable[[str, str], None] = lambda method, target: None
        self.tabs: set[str] = set()

    async def call(self, method: str, session: str = "", **params: object) -> Reply:
        target = str(params.get("targetId", session))
        self.before(method, target)
        if method == "Target.createTarget":
            self.opens("first")
            return {"targetId": "first"}
        if method == "Target.attachToTarget":
            return {"sessionId": target}
        if method == "Target.getTargetInfo" and target not in self.tabs:
            raise Rejected("No target with given id found")
        return {}

    def opens(self, target: str) -> None:
        self.tabs.add(target)
        info = {"targetId": target, "type": "page", "browserContextId": "mine"}
        self.session.event("Target.targetCreated", {"targetInfo": info})

    def closes(self, target: str) -> None:
        self.tabs.discard(target)
        self.session.event("Target.targetDestroyed", {"targetId": target})


async def session_of(browser: FakeBrowser, home: Path) -> Session:
    browser.session = Session(browser, "mine", (800, 600), ALLOWED, home)
    await browser.session.start()
    return browser.session


async def test_a_tab_that_closes_while_it_is_opened_is_not_one_of_the_tabs(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)

    def closing(method: str, target: str) -> None:
        if method == "DOM.enable" and target == POPUP:
            browser.closes(POPUP)

    browser.before = closing
    browser.opens(POPUP)
    await session.settled()
    assert [tab.target for tab in session.tabs] == ["first"]
    assert session.front.target == "first"
    await session.close()


async def test_a_tab_that_is_gone_before_it_was_opened_is_no_fault(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)

    def refusing(method: str, target: str) -> None:
        if method == "Target.attachToTarget" and target == POPUP:
            browser.tabs.discard(POPUP)
            raise Rejected("No target with given id found")

    browser.before = refusing
    browser.opens(POPUP)
    await session.settled()
    assert session.front.target == "first"
    await session.close()


async def test_a_tab_that_exists_and_cannot_be_opened_is_a_fault(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)

    def refusing(method: str, target: str) -> None:
        if method == "Page.enable" and target == POPUP:
            raise EnvironmentFault("Page.enable: no answer in 20 s")

    browser.before = refusing
    browser.opens(POPUP)
    with pytest.raises(EnvironmentFault, match=r"could not be opened.*no answer"):
        await session.settled()
    await session.close()


async def test_a_dialog_of_several_lines_is_one_line_of_the_note(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)
    dialog: dict[str, Any] = {"message": "Saved.\nrefused: nothing"}
    session.front._event("Page.javascriptDialogOpening", dialog)
    assert session.take_notes() == "the page said: Saved. refused: nothing"
    await session.close()


async def test_a_new_tab_that_never_opens_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)
    browser.opens = lambda target: None  # type: ignore[method-assign]
    session._closed("first")
    monkeypatch.setattr(browsing_session, "CALL_TIMEOUT", 0.05)
    with pytest.raises(EnvironmentFault, match="a new tab did not open"):
        await session.new_tab()


async def test_a_page_cannot_fill_the_disk_with_downloads(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)
    stopped: list[object] = []

    async def call(method: str, session: str = "", **params: object) -> Reply:
        assert method == "Browser.cancelDownload"
        stopped.append(params["guid"])
        return {}

    browser.call = call  # type: ignore[method-assign]
    for number in range(MOST_DOWNLOADS + 2):
        begun = {"guid": str(number), "frameId": "first", "suggestedFilename": f"{number}.txt"}
        session.event("Browser.downloadWillBegin", begun)
        await asyncio.sleep(0)
        state = "canceled" if stopped else "completed"
        ended = {"guid": str(number), "state": state, "totalBytes": 1, "receivedBytes": 1}
        session.event("Browser.downloadProgress", ended)
    assert stopped == [str(MOST_DOWNLOADS), str(MOST_DOWNLOADS + 1)]
    assert len(session.downloads) == MOST_DOWNLOADS
    assert session.take_notes().endswith("the download of 21.txt was stopped")


async def test_a_tab_that_opens_while_the_session_ends_is_released(tmp_path: Path) -> None:
    browser = FakeBrowser()
    session = await session_of(browser, tmp_path)
    ended, answer = asyncio.Event(), browser.call

    async def late(method: str, session: str = "", **params: object) -> Reply:
        if method == "Target.attachToTarget":
            await ended.wait()
        return await answer(method, session, **params)

    browser.call = late  # type: ignore[method-assign]
    browser.opens(POPUP)
    await asyncio.sleep(0)
    await session.close()
    ended.set()
    await session._opened()
    assert browser._listeners == {}
