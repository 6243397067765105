"""Samples of level 2 of stage 1: instructions of one step on any screen, with the correct action.

The screen may come from any environment; the action is computed from its elements.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1.synthesis.screen_words import (
    by_role,
    label,
    named,
    noun,
    only_ones,
    ordinal,
    quoted,
    sentence,
)
from swarm_ui.optim.stage1.synthesis.screens import ActionSample

Asked = tuple[str, Action]
"""An instruction and the correct action."""
COMPLETE = Action(action_type="status", goal_status="complete")

_TAP = ("tap", "press", "click", "click on", "tap on", "hit", "select", "touch", "choose", "push")
_OPEN = ("open", "go to", "open up", "bring up", "enter")
_POLITE = ("please {}", "{} please", "now {}", "could you {}", "next, {}", "just {}", "{} now")
_TYPE = (
    "type {text} into {where}", "write {text} in {where}", "fill {where} with {text}",
    "enter {text} in {where}", "put {text} into {where}", "set {where} to {text}",
    "{where}: {text}", "{where} should say {text}", "fill in {text} as {where}",
    "let {where} be {text}", "enter {text} as {where}", "use {text} for {where}",
)  # fmt: skip
_ON = ("switch {} on", "turn {} on", "enable {}", "activate {}", "make sure that {} is on",
       "{} should be on", "set {} to on")  # fmt: skip
_OFF = ("switch {} off", "turn {} off", "disable {}", "deactivate {}", "make sure that {} is off",
        "{} should be off", "set {} to off")  # fmt: skip
_CHECK = ("check {}", "tick {}", "tick off {}", "mark {} as done", "check the box of {}")
_UNCHECK = ("uncheck {}", "untick {}", "clear the check box of {}", "take the tick off {}")
_CHOOSE = ("choose {}", "select {}", "pick {}", "take {}", "set it to {}", "use the option {}")
_PURPOSES = {
    "add": ("start a new entry", "make another one", "begin a new one", "get an empty form",
            "I want to add one more"),
    "save": ("store what was entered", "confirm it", "complete the form", "save this",
             "accept the entries", "I am done with this form"),
    "edit": ("alter the details", "let me modify this one", "open this for editing",
             "I want to edit this"),
    "delete": ("get rid of this", "this is not needed any more, remove it", "delete this",
               "throw this away", "remove this one"),
    "leave": ("do not save this", "cancel this", "never mind, leave this", "close this without "
              "saving", "stop here and store nothing"),
}  # fmt: skip
_BACK = ("go back", "go back one screen", "return to the previous screen", "leave this screen",
         "back", "one step back", "go to the screen before this one", "press back")  # fmt: skip
_HOME = ("go to the home screen", "go home", "return to the home screen", "show the home screen",
         "leave the app", "home")  # fmt: skip
_DOWN = ("scroll down", "show more of the list", "scroll to the next entries", "see what follows",
         "next page of the list")  # fmt: skip
_EXTRA = ("blue river", "17", "hello", "12:30", "4.99", "anna lee", "no news", "west gate", "2031")


def instructions(observation: Observation, rng: random.Random) -> list[ActionSample]:
    """An instruction for each action that is possible on a screen.

    The phrasing of each is drawn at random. An element is named only if no other element has its
    label. The goal of each decision is the instruction; its history is empty.
    """
    blank = replace(observation, history=())
    return [
        ActionSample(Decision(observation=replace(blank, goal=text)), action, level=2)
        for text, action in _asked(blank, rng)
        if observation.offers(action.action_type)
    ]


def instruction(observation: Observation, rng: random.Random) -> ActionSample | None:
    """A random one of :func:`instructions`, uniform over kinds of actions, or ``None``."""
    kinds: dict[str, list[ActionSample]] = {}
    for sample in instructions(observation, rng):
        assert isinstance(sample.action, Action)
        kinds.setdefault(sample.action.action_type, []).append(sample)
    weights = [5.0 if kind in ("click", "input_text") else 1.0 for kind in kinds]
    return rng.choice(rng.choices(list(kinds.values()), weights)[0]) if kinds else None


def _asked(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    unique = named(screen)
    for element in unique:
        yield from _about(element, screen, rng)
    yield from _counted(screen, rng)
    for meaning, element in only_ones(screen.elements).items():
        yield sentence(rng.choice(_PURPOSES[meaning]), rng), _on(element)
    yield from _moves(screen, rng)


def _about(element: Element, screen: Observation, rng: random.Random) -> Iterator[Asked]:
    """Instructions that name the element."""
    name = quoted(label(element), rng)
    click = _on(element)
    if element.editable:
        text = _text(screen, rng)
        done = (element.value or "").casefold() == text.casefold()
        where = rng.choice((name, f"the {noun(element, rng)} {name}", f"the {name} field"))
        said = rng.choice(_TYPE).format(text=quoted(text, rng), where=where)
        typed = replace(click, action_type="input_text", text=text)
        yield _framed(said, rng), COMPLETE if done else typed
    elif element.checked is None:
        if element.clickable:
            verbs = _OPEN if element.role in ("app", "tab", "link") and rng.random() < 0.5 else _TAP
            what = noun(element, rng)
            where = rng.choice((name, name, f"the {what} {name}", f"the {name} {what}"))
            yield _framed(f"{rng.choice(verbs)} {where}", rng), click
    elif element.role in ("radio", "option"):
        yield _framed(rng.choice(_CHOOSE).format(name), rng), COMPLETE if element.checked else click
    else:
        box = element.role == "checkbox"
        wanted = rng.random() < 0.5
        words: tuple[str, ...] = (_CHECK if box else _ON) if wanted else _UNCHECK if box else _OFF
        met = element.checked == wanted
        yield _framed(rng.choice(words).format(name), rng), COMPLETE if met else click


def _counted(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    """Instructions that count elements of one role, such as "tap the second item"."""
    for role in sorted({element.role for element in screen.elements if element.clickable}):
        alike = by_role(screen, role)
        if len(alike) < 2:
            continue
        place = rng.randrange(len(alike))
        which, element = ordinal(place, len(alike), rng), alike[place]
        if which is None or not element.clickable or not element.enabled:
            continue
        what = f"the {which} {noun(element, rng)}"
        if element.editable:
            text = _text(screen, rng)
            said = rng.choice(_TYPE).format(text=quoted(text, rng), where=what)
            yield _framed(said, rng), replace(_on(element), action_type="input_text", text=text)
        else:
            yield _framed(f"{rng.choice(_TAP)} {what}", rng), _on(element)


def _moves(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    """Instructions that need no element."""
    if screen.app not in ("", "home"):
        yield _framed(rng.choice(_BACK), rng), Action(action_type="navigate_back")
        yield _framed(rng.choice(_HOME), rng), Action(action_type="navigate_home")
    elif screen.app == "home":
        yield _framed(rng.choice(_HOME[:4]), rng), COMPLETE
    if any(element.scrollable for element in screen.elements):
        yield _framed(rng.choice(_DOWN), rng), Action(action_type="scroll", direction="down")


def _framed(text: str, rng: random.Random) -> str:
    if rng.random() < 0.25:
        text = rng.choice(_POLITE).format(text)
    return sentence(text, rng)


def _text(screen: Observation, rng: random.Random) -> str:
    """Words to type: words of the screen and of its goal, or a number."""
    words = [w for e in screen.elements for w in (e.value or e.label).split()] + list(_EXTRA)
    return " ".join(rng.choice(words) for _ in range(rng.choice((1, 1, 2, 3))))


def _on(element: Element) -> Action:
    return Action(action_type="click", target=element.label, index=element.index)
