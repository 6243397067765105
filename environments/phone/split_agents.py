"""Scripted agents for split facts: they read the goal, their own view, and the messages they hear.

They are **scripted**: they know the wordings of the goals, and they show what the environment
measures, not what a language model can do. One function plays all roles:

- An agent whose app is not operated states the records that the goal names, with all values, and
  abstains. It does not know whether its value is the right one.
- The acting agent uses a value only if a message states it for the named record in the named app.
  If a value is missing, it declares the task infeasible in its first step.
- One agent on one screen (``whole=True``) opens the apps, copies the values and remembers them from
  its history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from swarm_ui.action import Abstain, Action
from swarm_ui.environments.phone.split import NAMES, SPLIT_TEMPLATES, Fact, SplitTemplate
from swarm_ui.environments.phone.state import Table
from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import as_chat, format_named, reason_of, transcript

FORMAT = "compact"
"""Prompt format in which scripted agents reply."""
_COMPACT = format_named(FORMAT)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_GIVE_UP = Action(action_type="status", goal_status="infeasible")
_DONE = Action(action_type="status", goal_status="complete")
_HOME = Action(action_type="navigate_home")


class ScriptedAgents:
    """The model of all agents. It is a script, not a language model."""

    name = "scripted"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One scripted reply for each request, with its prompt in the compact format.

        Raises:
            ConfigError: a goal does not belong to a split task.
        """
        return [_reply(request) for request in requests]


def _reply(request: Request) -> Completion:
    """The scripted reply. The words of the prompt and of the reply count as tokens."""
    assert request.decision is not None
    chat = as_chat(request, _COMPACT.chat)
    text = scripted_reply(request.decision)
    words = sum(len(turn.content.split()) for turn in chat)
    return Completion(
        text=text,
        prompt=transcript(chat),
        usage=Usage(prompt_tokens=words, completion_tokens=len(text.split())),
        model="scripted",
        prompt_format=FORMAT,
    )


def scripted_reply(decision: Decision) -> str:
    """The reply of an agent in the compact format.

    Raises:
        ConfigError: the goal does not belong to a split task.
    """
    screen = decision.observation
    if decision.partial and not screen.elements:
        return _COMPACT.write(Abstain(), screen)
    goal = read_goal(screen.goal)
    panes = {element.pane for element in screen.elements}
    if panes != {""} and goal.spec.acting not in panes:
        return _COMPACT.write(Abstain(), screen, statement(screen, goal))
    return _COMPACT.write(_action(decision, goal), screen)


def statement(screen: Observation, goal: ReadGoal) -> str:
    """All records of a pane that the goal names, such as ``in contacts ana silva has phone ...``.

    Empty if there are none.
    """
    said = [
        f"in {element.pane} {element.text} has {element.value}"
        for element in screen.elements
        if element.value is not None and _about(element, goal.names)
    ]
    return "; ".join(said)


def _about(element: Element, names: tuple[str, ...]) -> bool:
    text = f" {element.text}, {element.value}, "
    return any(re.search(rf" {re.escape(name)}[ ,]", text) for name in names)


def _action(decision: Decision, goal: ReadGoal) -> Action:
    screen, spec = decision.observation, goal.spec
    found = [
        _known(decision, fact, name) for fact, name in zip(spec.facts, goal.names, strict=True)
    ]
    missing = next((k for k, value in enumerate(found) if value is None), None)
    if missing is None:
        fields = spec.fields(goal.words, [value for value in found if value is not None])
        return _write(screen, spec.into, fields)
    if screen.elements and screen.elements[0].pane:
        return _GIVE_UP
    return _look_up(screen, spec.facts[missing], goal.names[missing])


# -- finding values -------------------------------------------------------------------------------


def _known(decision: Decision, fact: Fact, name: str) -> str | None:
    """The value of a fact, from the view, the messages or the history."""
    told = rf"in {fact.app} {re.escape(name)} has ([^;]*)"
    for heard in decision.heard:
        said = re.search(told, reason_of(heard.content, heard.prompt_format))
        if said is not None:
            return _field(said[1].strip(), fact.field)
    for element in decision.observation.elements:
        if element.pane == fact.app and element.text == name and element.value is not None:
            return _field(element.value, fact.field)
    return _copied(decision.observation, fact, name)


def _field(values: str, field: str) -> str | None:
    found = re.search(rf"(?:^|, ){field} ([^,]*)", values)
    return None if found is None else found[1]


def _copied(screen: Observation, fact: Fact, name: str) -> str | None:
    """A value that the agent clicked on, in the right record of the right app."""
    app = record = ""
    for past in screen.history:
        if past.action.action_type == "navigate_home":
            app = record = ""
        elif past.role == "app":
            app = past.label
        elif (app, record) == (fact.app, name) and past.label.startswith(f"{fact.field} "):
            return past.label.removeprefix(f"{fact.field} ")
        else:
            record = past.label
    return None


# -- acting ---------------------------------------------------------------------------------------


def _look_up(screen: Observation, fact: Fact, name: str) -> Action:
    """The next action towards a value, on one screen."""
    if screen.app == "home":
        return _click(screen, fact.app) or _GIVE_UP
    if screen.app == fact.app:
        return _click(screen, name) or _HOME
    last = screen.history[-1] if screen.history else None
    if screen.app == f"{fact.app} detail" and last is not None and last.label == name:
        return _click(screen, fact.field) or _HOME
    return _HOME


def _write(screen: Observation, table: Table, fields: dict[str, str]) -> Action:
    """The next action towards the new record."""
    last = screen.history[-1] if screen.history else None
    if last is not None and last.role == "button" and last.label == table.save:
        return _DONE
    shown = [e for e in screen.elements if e.pane in ("", table.app)]
    form = {element.text: element for element in shown if element.editable}
    for name, wanted in fields.items():
        if name in form and form[name].value != wanted:
            return Action(
                action_type="input_text", target=name, index=form[name].index, text=wanted
            )
    if screen.app == "home":
        return _click(screen, table.app) or _GIVE_UP
    if screen.app.split()[0] != table.app:
        return _HOME
    return _click(screen, table.save if fields.keys() <= form.keys() else table.add) or _HOME


def _click(screen: Observation, text: str) -> Action | None:
    for element in screen.elements:
        if element.text == text and element.clickable:
            return Action(action_type="click", target=text, index=element.index)
    return None


# -- reading goals --------------------------------------------------------------------------------


class ReadGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed goal text."""

    spec: SplitTemplate
    words: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The titles of the records that hold the facts, in the order of the facts."""
        return tuple(self.words[NAMES[k]] for k in range(len(self.spec.facts)))


@lru_cache(maxsize=4096)
def read_goal(text: str) -> ReadGoal:
    """Match a goal with the texts of all templates.

    Raises:
        ConfigError: the text is not the goal of a split task.
    """
    for spec, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return ReadGoal(spec=spec, words=found.groupdict())
    raise ConfigError(f"scripted agents: {text!r} is not the goal of a task of SplitPhone")


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[SplitTemplate, re.Pattern[str]]]:
    """A pattern for each text of a goal, the longest text first.

    A shorter text is tried later, because one of its placeholders could match the rest of a longer
    text.
    """
    found = [(spec, goal) for spec in SPLIT_TEMPLATES.values() for goal in spec.goals]
    found.sort(key=lambda pair: len(pair[1]), reverse=True)
    return [(spec, re.compile(_regex(goal))) for spec, goal in found]


def _regex(goal: str) -> str:
    """A pattern for the text of a goal. A placeholder matches one to three words without commas."""
    parts = _PLACEHOLDER.split(goal)
    word = r"[^\s,]+(?: [^\s,]+){0,2}?"
    return "".join(
        f"(?P<{part}>{word})" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)
    )
