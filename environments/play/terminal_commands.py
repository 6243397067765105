"""Parse the commands of a person at the terminal."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.action import Action, ActionType, Direction, Unparsed, parse_action
from swarm_ui.observation import Observation

Word = Literal["undo", "help", "quit"]


class Mistake(msgspec.Struct, frozen=True):
    """An invalid line, and the reason."""

    why: str


HELP = """\
7            press element 7                    7 oat milk     type “oat milk” into it
long 7       press it long                      double 7       press it twice
drag 7 9     drag it onto element 9             select 7 Red   choose an option of it
up  down  left  right    scroll                 back  home  enter  wait
open maps    open an app                        answer 42      answer the question
done         say that the task is done          cannot         say that it cannot be done
undo         take the last action back          help  quit
or an action as JSON: {"action_type": "click", "index": 7}"""

_PLAIN: dict[str, ActionType] = {
    "back": "navigate_back",
    "home": "navigate_home",
    "enter": "keyboard_enter",
    "wait": "wait",
}
_SCROLL: dict[str, Direction] = {"up": "up", "down": "down", "left": "left", "right": "right"}
_WORDS: dict[str, Word] = {"undo": "undo", "help": "help", "?": "help", "quit": "quit"}


def read_command(line: str, screen: Observation) -> Action | Word | Mistake:
    """Parse a line: an action, a command of the session, or a mistake.

    A mistake is not sent to the environment, so it costs no step.
    """
    line = line.strip()
    word, _, rest = line.partition(" ")
    word, rest = word.casefold(), rest.strip()
    if line.startswith("{"):
        found = parse_action(line)
        return Mistake(f"no action: {found.reason}") if isinstance(found, Unparsed) else found
    if word in _WORDS and not rest:
        return _WORDS[word]
    if _is_number(word):
        return _on_element(int(word), rest, screen)
    if word in ("long", "double", "drag", "select"):
        return _second(word, rest, screen)
    if word in _PLAIN and not rest:
        return Action(action_type=_PLAIN[word])
    if word in _SCROLL and not rest:
        return Action(action_type="scroll", direction=_SCROLL[word])
    if word == "open" and rest:
        return Action(action_type="open_app", app_name=rest)
    if word == "answer" and rest:
        return Action(action_type="answer", text=rest)
    if word in ("done", "cannot") and not rest:
        status: Literal["complete", "infeasible"] = "complete" if word == "done" else "infeasible"
        return Action(action_type="status", goal_status=status)
    return Mistake(f"“{line}” means nothing here; “help” lists what does" if line else "")


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) < 10


def _on_element(index: int, text: str, screen: Observation) -> Action | Mistake:
    element = screen.element(index)
    if element is None:
        return Mistake(f"no element {index}: the screen has {len(screen.elements)}")
    target = element.label or None
    if not text:
        return Action(action_type="click", index=index, target=target)
    if element.editable:
        return Action(action_type="input_text", index=index, target=target, text=text)
    return Mistake(f"{element.role} {index} takes no text; press it with “{index}”")


def _second(word: str, rest: str, screen: Observation) -> Action | Mistake:
    """A command with the number of an element."""
    number, _, more = rest.partition(" ")
    if not _is_number(number):
        return Mistake(f"“{word}” needs the number of an element")
    index, more = int(number), more.strip()
    element = screen.element(index)
    if element is None:
        return Mistake(f"no element {index}: the screen has {len(screen.elements)}")
    target = element.label or None
    if word == "select":
        if not more:
            return Mistake("“select” needs the option after the number")
        return Action(action_type="select", index=index, target=target, text=more)
    if word == "drag":
        if not _is_number(more) or screen.element(int(more)) is None:
            return Mistake("“drag” needs the numbers of two elements")
        return Action(action_type="swipe", index=index, target=target, to_index=int(more))
    kind: ActionType = "long_press" if word == "long" else "double_tap"
    return Action(action_type=kind, index=index, target=target)
