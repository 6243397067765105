"""Do a task by hand in the terminal: the screen is a table, an action is a line of text."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from swarm_ui.environment import Environment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.environments.play.terminal_commands import HELP, Mistake, read_command
from swarm_ui.observation import Element
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode

PROMPT = "> "


async def play_in_terminal(
    env: Environment,
    task: str,
    seed: int = 0,
    *,
    path: Anywhere | None = None,
    actor: str = "person",
    console: Console | None = None,
    read: Callable[[str], str | Awaitable[str]] | None = None,
) -> Episode | None:
    """Let a person do a task with typed commands (``help`` lists them).

    Args:
        env: the environment; not closed here. Actions can be undone if it is restorable.
        task, seed: the task and the seed of the episode.
        path: JSON lines file to append the episode to.
        actor: name of the player in the record.
        console: shows the screen.
        read: reads a line, given the prompt; ``EOFError`` ends the session.

    Returns:
        the episode, or ``None`` if nothing was done. ``success`` is ``None`` if the person gave up.
    """
    console = console or Console()
    read = read or _read_line
    session = PlaySession(env, path, actor)
    await session.begin(task, seed)
    try:
        _show(console, session)
        while not session.ended:
            try:
                line = read(PROMPT)
                found = read_command(
                    await line if inspect.isawaitable(line) else line, session.screen
                )
            except EOFError:
                found = "quit"
            except UnicodeDecodeError:
                found = Mistake("the line is not UTF-8 text; type it again")
            if isinstance(found, Mistake):
                console.print(Text(_plain(found.why), "yellow"))
            elif found == "help":
                console.print(Text(HELP))
            elif found == "quit":
                break
            elif found == "undo":
                if session.undo():
                    _show(console, session)
                else:
                    console.print(Text("there is nothing to undo", "yellow"))
            else:
                await session.act(found)
                _show(console, session)
    finally:
        if not session.ended:
            session.leave()
    console.print(Text(_plain(session.outcome()), "bold"))
    if path is not None and session.episode is not None:
        console.print(Text(f"saved in {path}", "dim"))
    return session.episode


def _show(console: Console, session: PlaySession) -> None:
    screen = session.screen
    console.rule(Text(_plain(screen.app or "screen")))
    console.print(Text("Task  ", "dim") + Text(_plain(screen.goal), "bold"))
    table = Table(box=None, padding=(0, 1), show_header=False)
    for justify, style in (("right", "cyan"), ("left", "dim"), ("left", ""), ("left", "green")):
        table.add_column(justify=justify, style=style)  # type: ignore[arg-type]
    for element in screen.elements:
        table.add_row(
            str(element.index),
            element.role,
            Text(_plain(element.label) or "·", "" if element.enabled else "strike dim"),
            Text(_plain(_state(element))),
        )
    console.print(table)
    if session.note:
        console.print(Text(_plain(session.note), "yellow"))


def _state(element: Element) -> str:
    """Value and state of an element."""
    parts = []
    if element.value is not None:
        parts.append(f"[{element.value}]" if element.editable else element.value)
    if element.checked is not None:
        parts.append("on" if element.checked else "off")
    if element.selected:
        parts.append("selected")
    if element.focused:
        parts.append("focused")
    if element.scrollable:
        parts.append("scrolls")
    return "  ".join(parts)


def _plain(text: str) -> str:
    """The text without control characters and direction marks."""
    return "".join(c if c.isprintable() else "�" for c in text)


async def _read_line(prompt: str) -> str:
    """Read a line of the terminal, in a thread that does not keep the program alive."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def ask() -> None:
        try:
            settle: Callable[[], None] = partial(line.set_result, input(prompt))
        except Exception as error:  # the caller must hear of it, or it would wait forever
            settle = partial(line.set_exception, error)
        # After Ctrl-C the loop may be closed before the line is entered.
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if line.done() else settle())

    threading.Thread(target=ask, name="terminal", daemon=True).start()
    return await line
