"""Do a task by hand in a browser, on a page that is served to this machine only."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.play.page_state import state
from swarm_ui.environments.play.server import Answer, Server
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode


async def play_in_browser(
    env: Environment,
    task: str,
    seed: int = 0,
    *,
    path: Anywhere | None = None,
    actor: str = "person",
    port: int = 0,
    show: Callable[[str], object] = webbrowser.open,
) -> Episode | None:
    """Let a person do a task on a page that shows the screenshot, or the boxes of the elements.

    The page is served to this machine only, under a secret address, until the task has ended. It
    loads nothing from other servers.

    Args:
        env: the environment, preferably with screenshots; not closed here. Actions can be undone
            if it is restorable.
        task, seed: of the episode.
        path: JSON lines file to append the episode to.
        actor: name of the player in the record.
        port: the port to serve on; 0: any free port.
        show: called with the address of the page; opens it in a browser by default.

    Returns:
        the episode, or ``None`` if nothing was done. ``success`` is ``None`` if the person gave up.
    """
    session = PlaySession(env, path, actor)
    await session.begin(task, seed)
    over = asyncio.Event()
    requests = _Requests(session, task, str(path) if path is not None else "")
    try:
        with Server(requests.answer, asyncio.get_running_loop(), over.set, port) as server:
            show(server.address)
            await over.wait()
    finally:
        if not session.ended:
            session.leave()
    return session.episode


class _Requests:
    """Answers the requests of the page, one at a time."""

    def __init__(self, session: PlaySession, task: str, path: str) -> None:
        self._session, self._task, self._path = session, task, path
        self._turn = asyncio.Lock()

    async def answer(self, what: str, turn: int | None, action: Action | None) -> Answer:
        """Do what is asked, and return the state; 409 if the page showed an older screen."""
        async with self._turn:
            session = self._session
            stale = turn is not None and turn != session.turn
            if not stale and not session.ended:
                if what == "act" and action is not None:
                    await session.act(action)
                elif what == "undo":
                    session.undo()
                elif what == "leave":
                    session.leave()
            body = state(session, task=self._task, path=self._path)
            return Answer(status=409 if stale else 200, body=body, last=session.ended)
