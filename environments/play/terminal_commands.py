"""Parse the commands of a person at the terminal."""

from __future__ import annotations

from functools import partial
from typing import Literal

import msgspec

from swarm_ui.action import Action, Unparsed, parse_action
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

_ALONE: dict[str, Action | Word] = {
    "back": Action(action_type="navigate_back"),
    "home": Action(action_type="navigate_home"),
    "enter": Action(action_type="keyboard_enter"),
    "wait": Action(action_type="wait"),
    "up": Action(action_type="scroll", direction="up"),
    "down": Action(action_type="scroll", direction="down"),
    "left": Action(action_type="scroll", direction="left"),
    "right": Action(action_type="scroll", direction="right"),
    "done": Action(action_type="status", goal_status="complete"),
    "cannot": Action(action_type="status", goal_status="infeasible"),
    "undo": "undo",
    "help": "help",
    "?": "help",
    "quit": "quit",
}


def read_command(line: str, screen: Observation) -> Action | Word | Mistake:
    """Parse a line: an action, a command of the session, or a mistake.

    A mistake is not sent to the environment, so it costs no step.
    """
    line = line.strip()
    if line.startswith("{"):
        found = parse_action(line)
        return Mistake(f"no action: {found.reason}") if isinstance(found, Unparsed) else found
    word, _, rest = line.partition(" ")
    word, rest = word.casefold(), rest.strip()
    if word in _ALONE and not rest:
        return _ALONE[word]
    if _is_number(word):
        return _on_element("press", word, rest, screen)
    if word in ("long", "double", "drag", "select"):
        number, _, more = rest.partition(" ")
        return _on_element(word, number, more.strip(), screen)
    if word == "open" and rest:
        return Action(action_type="open_app", app_name=rest)
    if word == "answer" and rest:
        return Action(action_type="answer", text=rest)
    return Mistake(f"“{line}” means nothing here; “help” lists what does" if line else "")


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) < 10


def _on_element(word: str, number: str, rest: str, screen: Observation) -> Action | Mistake:
    """The action of a command on an element; ``rest`` follows the element's number."""
    if not _is_number(number):
        return Mistake(f"“{word}” needs the number of an element")
    index = int(number)
    element = screen.element(index)
    if element is None:
        return Mistake(f"no element {index}: the screen has {len(screen.elements)}")
    act = partial(Action, index=index, target=element.label or None)
    if word == "long":
        return act(action_type="long_press")
    if word == "double":
        return act(action_type="double_tap")
    if word == "select":
        missing = Mistake("“select” needs the option after the number")
        return act(action_type="select", text=rest) if rest else missing
    if word == "drag":
        if not _is_number(rest) or screen.element(int(rest)) is None:
            return Mistake("“drag” needs the numbers of two elements")
        return act(action_type="swipe", to_index=int(rest))
    if not rest:
        return act(action_type="click")
    if element.editable:
        return act(action_type="input_text", text=rest)
    return Mistake(f"{element.role} {index} takes no text; press it with “{index}”")
