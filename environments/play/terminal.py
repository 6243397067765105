"""Do a task by hand in the terminal: the screen is a table, an action is a line of text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.environment import Environment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode

Word = Literal["undo", "help", "quit"]
HELP = """\
7            press element 7                    7 oat milk     type “oat milk” into it
up  down     scroll                             back  home  enter  wait
done         say that the task is done          cannot         say that it cannot be done
answer 42    answer the question                undo  help  quit
or an action as JSON: {"action_type": "long_press", "index": 7}"""
_WORDS: dict[str, Action | Word] = {
    "back": Action(action_type="navigate_back"),
    "home": Action(action_type="navigate_home"),
    "enter": Action(action_type="keyboard_enter"),
    "wait": Action(action_type="wait"),
    "up": Action(action_type="scroll", direction="up"),
    "down": Action(action_type="scroll", direction="down"),
    "done": Action(action_type="status", goal_status="complete"),
    "cannot": Action(action_type="status", goal_status="infeasible"),
    "undo": "undo",
    "help": "help",
    "?": "help",
    "quit": "quit",
}


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


async def play_in_terminal(
    env: Environment,
    task: str,
    seed: int = 0,
    *,
    path: Anywhere | None = None,
    actor: str = "person",
    console: Console | None = None,
    read: Callable[[str], Awaitable[str]] = _read_line,
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
    session = PlaySession(env, path, actor)
    await session.begin(task, seed)
    try:
        _show(console, session)
        while not session.ended:
            try:
                found = read_command(await read("> "), session.screen)
            except EOFError:
                break
            except UnicodeDecodeError:
                console.print(Text("the line is not UTF-8 text; type it again", "yellow"))
                continue
            except ConfigError as mistake:
                console.print(Text(_plain(str(mistake)), "yellow"))
                continue
            if found == "quit":
                break
            if found == "help":
                console.print(Text(HELP))
                continue
            if isinstance(found, Action):
                await session.act(found)
            elif not session.undo():
                console.print(Text("there is nothing to undo", "yellow"))
                continue
            _show(console, session)
    finally:
        if not session.ended:
            session.leave()
    console.print(Text(_plain(session.outcome()), "bold"))
    if path is not None and session.episode is not None:
        console.print(Text(f"saved in {path}", "dim"))
    return session.episode


def read_command(line: str, screen: Observation) -> Action | Word:
    """Parse a line: an action, or a command of the session.

    Raises:
        ConfigError: it is neither; it costs no step.
    """
    line = line.strip()
    if line.startswith("{"):
        found = parse_action(line)
        if isinstance(found, Unparsed):
            raise ConfigError(f"no action: {found.reason}")
        return found
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if line.casefold() in _WORDS:
        return _WORDS[line.casefold()]
    if word.casefold() == "answer" and rest:
        return Action(action_type="answer", text=rest)
    if not word.isdecimal() or len(word) > 9:
        raise ConfigError(f"“{line}” means nothing here; “help” lists what does")
    element = screen.element(int(word))
    if element is None:
        raise ConfigError(f"no element {word}: the screen has {len(screen.elements)}")
    if rest and not element.editable:
        raise ConfigError(f"{element.role} {word} takes no text; press it with “{word}”")
    kind: Literal["input_text", "click"] = "input_text" if rest else "click"
    target = element.label or None
    return Action(action_type=kind, index=element.index, target=target, text=rest or None)


def _show(console: Console, session: PlaySession) -> None:
    screen = session.screen
    console.rule(Text(_plain(screen.app or "screen")))
    console.print(Text("Task  ", "dim") + Text(_plain(screen.goal), "bold"))
    table = Table(box=None, padding=(0, 1), show_header=False)
    for style in ("cyan", "dim", "", "green"):
        table.add_column(style=style)
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
    value = element.value
    parts = [] if value is None else [f"[{value}]" if element.editable else value]
    if element.checked is not None:
        parts.append("on" if element.checked else "off")
    states = {
        "selected": element.selected,
        "focused": element.focused,
        "scrolls": element.scrollable,
    }
    return "  ".join([*parts, *(name for name, on in states.items() if on)])


def _plain(text: str) -> str:
    """The text without control characters and direction marks."""
    return "".join(c if c.isprintable() else "�" for c in text)
