"""A task by hand in a browser: the screen to click on, served on this machine only."""

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
    """Let a person do a task on a page that shows the screenshot, or the elements' boxes.

    The page is served to this machine only, under an address that cannot be guessed, loads
    nothing from elsewhere, and is gone when the task is over.

    Args:
        env: the world, best with screenshots; not closed here. Actions can be undone if it is
            restorable.
        task, seed: of the episode.
        path: JSON lines file that the episode is added to.
        actor: who plays, for the record.
        port: to serve on; 0: any that is free.
        show: told the page's address once; opens it in the person's browser by default.

    Returns:
        the episode; ``None`` if nothing was done. One that was given up has no outcome.
    """
    sitting = PlaySession(env, path, actor)
    await sitting.begin(task, seed)
    over = asyncio.Event()
    table = _Table(sitting, task, str(path) if path is not None else "")
    try:
        with Server(table.answer, asyncio.get_running_loop(), over.set, port) as server:
            show(server.address)
            await over.wait()
    finally:
        if not sitting.ended:
            sitting.leave()
    return sitting.episode


class _Table:
    """Answers what the page asks, one thing after the other."""

    def __init__(self, sitting: PlaySession, task: str, path: str) -> None:
        self._sitting, self._task, self._path = sitting, task, path
        self._turn = asyncio.Lock()

    async def answer(self, what: str, turn: int | None, action: Action | None) -> Answer:
        """Do what is asked, and tell the screen; 409 if the page showed an older one."""
        async with self._turn:
            sitting = self._sitting
            stale = turn is not None and turn != sitting.turn
            if not stale and not sitting.ended:
                if what == "act" and action is not None:
                    await sitting.act(action)
                elif what == "undo":
                    sitting.undo()
                elif what == "leave":
                    sitting.leave()
            body = state(sitting, task=self._task, path=self._path)
            return Answer(status=409 if stale else 200, body=body, last=sitting.ended)
