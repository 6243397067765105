"""A task by hand in the terminal: the screen as a table, one line for each action."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable

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
    """Let a person do a task, told with numbers and words (``help`` lists them).

    Args:
        env: the world; not closed here. Actions can be undone if it is restorable.
        task, seed: of the episode.
        path: JSON lines file that the episode is added to.
        actor: who plays, for the record.
        console: where to show the screen.
        read: asks for one line, given the prompt; ``EOFError`` ends the game.

    Returns:
        the episode; ``None`` if nothing was done. One that was given up has no outcome.
    """
    console = console or Console()
    read = read or _read_line
    sitting = PlaySession(env, path, actor)
    await sitting.begin(task, seed)
    try:
        _show(console, sitting)
        while not sitting.ended:
            try:
                line = read(PROMPT)
                found = read_command(
                    await line if inspect.isawaitable(line) else line, sitting.screen
                )
            except EOFError:
                found = "quit"
            if isinstance(found, Mistake):
                console.print(Text(_plain(found.why), "yellow"))
            elif found == "help":
                console.print(Text(HELP))
            elif found == "quit":
                break
            elif found == "undo":
                if sitting.undo():
                    _show(console, sitting)
                else:
                    console.print(Text("there is nothing to undo", "yellow"))
            else:
                await sitting.act(found)
                _show(console, sitting)
    finally:
        if not sitting.ended:
            sitting.leave()
    console.print(Text(_plain(sitting.outcome()), "bold"))
    if path is not None and sitting.episode is not None:
        console.print(Text(f"saved in {path}", "dim"))
    return sitting.episode


def _show(console: Console, sitting: PlaySession) -> None:
    screen = sitting.screen
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
    if sitting.note:
        console.print(Text(_plain(sitting.note), "yellow"))


def _state(element: Element) -> str:
    """What else is to be seen of an element."""
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
    """Without characters that would move the cursor or turn the writing round."""
    return "".join(c if c.isprintable() else "�" for c in text)


async def _read_line(prompt: str) -> str:
    """A line of the terminal, read in a thread that does not keep the program from ending."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def answer(text: str | None) -> None:
        if line.done():
            return
        if text is None:
            line.set_exception(EOFError())
        else:
            line.set_result(text)

    def ask() -> None:
        try:
            text: str | None = input(prompt)
        except EOFError:
            text = None
        # After Ctrl-C the loop is gone by the time the line is entered, and nobody waits for it.
        if not loop.is_closed():
            loop.call_soon_threadsafe(answer, text)

    threading.Thread(target=ask, name="terminal", daemon=True).start()
    return await line
