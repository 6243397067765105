"""Do a task by hand in a browser, on a page that is served to this machine only."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

import msgspec

from swarm_ui.action import ACTION_TYPES
from swarm_ui.environment import Environment
from swarm_ui.environments.play.server import Answer, Posted, Server, open_privately
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.errors import SwarmError
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode

MARGIN = 10
"""Margin in pixels around the sketch of a screen without a screenshot."""
_PNG = b"\x89PNG\r\n\x1a\n"


async def play_in_browser(
    env: Environment,
    task: str,
    seed: int = 0,
    *,
    path: Anywhere | None = None,
    actor: str = "person",
    port: int = 0,
    show: Callable[[str], object] = open_privately,
) -> Episode | None:
    """Let a person do a task on a page that shows the screenshot, or the boxes of the elements.

    The page is served to this machine only, under a secret address, until the task has ended. It
    loads nothing from other servers.

    Args:
        env: the environment, preferably with screenshots; not closed here. Actions can be undone
            if it is restorable.
        task, seed: the task and the seed of the episode.
        path: JSON lines file to append the episode to.
        actor: name of the player in the record.
        port: the port to serve on; 0: any free port.
        show: called with the address of the page; by default, it opens the page in a browser.

    Returns:
        the episode, or ``None`` if nothing was done. ``success`` is ``None`` if the person gave up.

    Raises:
        Exception: what the environment raises, after the page was told. The actions before it are
            recorded as an episode that was given up.
    """
    session = PlaySession(env, path, actor)
    await session.begin(task, seed)
    game, over = _Game(session, task, str(path or "")), asyncio.Event()
    try:
        with Server(game.answer, asyncio.get_running_loop(), over.set, port) as server:
            show(server.address)
            await over.wait()
        if game.failure is not None:
            raise game.failure
    finally:
        if not session.ended:
            session.leave()
    return session.episode


class _Game:
    """Answers the requests of the page."""

    def __init__(self, session: PlaySession, task: str, path: str) -> None:
        self._session, self._task, self._path = session, task, path
        self._one_at_a_time = asyncio.Lock()
        self.failure: Exception | None = None
        """An error, after which the game cannot go on."""

    async def answer(self, place: str, posted: Posted) -> Answer:
        """Handle a request, and return the state; status 409 if the page showed an older screen.

        An error is reported to the page with status 500, and kept in :attr:`failure`.
        """
        session = self._session
        async with self._one_at_a_time:
            stale = posted.turn is not None and posted.turn != session.turn
            try:
                if not stale and not session.ended:
                    if place == "act" and posted.action is not None:
                        await session.act(posted.action)
                    elif place == "undo":
                        session.undo()
                    elif place == "leave":
                        session.leave()
                body = _state(session, self._task, self._path)
            except Exception as error:  # raised to the caller, once the page has its answer
                self.failure = self.failure or error
                kind = "" if isinstance(error, SwarmError) else f"{type(error).__name__}: "
                told = f"The task has ended with an error: {kind}{error}"
                body = msgspec.json.encode({"error": told.encode(errors="replace").decode()})
                return Answer(500, body, last=True)
            return Answer(409 if stale else 200, body, last=session.ended)


def _state(session: PlaySession, task: str, path: str) -> bytes:
    """The state of the page as JSON, with the picture, so that it belongs to the elements."""
    screen, episode = session.screen, session.episode
    width, height = _size(screen)
    told = {
        "turn": session.turn,
        "task": task,
        "goal": screen.goal,
        "app": screen.app,
        "elements": [{"label": e.label, **msgspec.to_builtins(e)} for e in screen.elements],
        "actions": screen.actions or ACTION_TYPES,
        "history": [_told(past) for past in screen.history],
        "picture": base64.b64encode(screen.png).decode() if screen.png else None,
        "width": width,
        "height": height,
        "note": session.note,
        "steps": session.steps,
        "undo": session.can_undo,
        "ended": session.ended,
    }
    if session.ended:
        solved = episode is not None and episode.success is True
        saved = path if episode is not None else ""
        told |= {"outcome": session.outcome(), "solved": solved, "saved": saved}
    return msgspec.json.encode(told)


def _size(screen: Observation) -> tuple[int, int]:
    """Width and height in pixels: of the picture, or of the box around all elements."""
    png = screen.png
    if png is not None and png.startswith(_PNG) and len(png) >= 24:
        return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    bounds = [element.bounds for element in screen.elements if element.bounds is not None]
    if not bounds:
        return 0, 0
    return max(b[2] for b in bounds) + MARGIN, max(b[3] for b in bounds) + MARGIN


def _told(past: Past) -> str:
    action = past.action
    if past.label and not action.target:
        action = msgspec.structs.replace(action, target=past.label)
    return str(action)
