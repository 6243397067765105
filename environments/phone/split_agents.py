"""Scripted agents for split facts: they read the goal, their own view, and the messages they hear.

They are **scripted**: they know the wordings of the goals, and they show what the environment
measures, not what a language model can do. One function plays all roles:

- An agent whose app is not operated states the records that the goal names, with all values, and
  abstains. It does not know whether its value is the right one.
- The acting agent uses a value only if a message states it for the named record in the named app.
  If a value is missing, it declares the task infeasible in its first step.
- One agent that sees all panes reads the values there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from swarm_ui.action import Abstain, Action
from swarm_ui.environments.phone.split import NAMES, SPLIT_TEMPLATES, Fact, SplitTemplate
from swarm_ui.environments.phone.state import Table
from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.prompts import as_chat, format_named, reason_of, transcript

_COMPACT = format_named("compact")
_GIVE_UP = Action(action_type="status", goal_status="infeasible")
_DONE = Action(action_type="status", goal_status="complete")
_WORDS = r"[^\s,]+(?: [^\s,]+){0,2}?"
"""What a placeholder of a goal stands for: one to three words without commas."""


class ScriptedAgents:
    """The model of all agents. It is a script, not a language model."""

    name = "scripted"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One scripted reply for each request, with its prompt in the compact format. The words of
        prompts and replies count as tokens.

        Raises:
            ConfigError: a goal does not belong to a split task.
        """
        replies = []
        for request in requests:
            assert request.decision is not None
            chat, text = as_chat(request, _COMPACT.chat), scripted_reply(request.decision)
            heard = sum(len(turn.content.split()) for turn in chat)
            replies.append(
                Completion(
                    text=text,
                    prompt=transcript(chat),
                    usage=Usage(prompt_tokens=heard, completion_tokens=len(text.split())),
                    model=self.name,
                    prompt_format="compact",
                )
            )
        return replies


def scripted_reply(decision: Decision) -> str:
    """The reply of an agent in the compact format.

    Raises:
        ConfigError: the goal does not belong to a split task.
    """
    screen = decision.observation
    if decision.partial and not screen.elements:
        return _COMPACT.write(Abstain(), screen)
    spec, words = read_goal(screen.goal)
    named = [(fact, words[NAMES[k]]) for k, fact in enumerate(spec.facts)]
    if all(element.pane != spec.acting for element in screen.elements):
        return _COMPACT.write(Abstain(), screen, _statement(screen, [name for _, name in named]))
    values = [_known(decision, *one) for one in named]
    known = [value for value in values if value is not None]
    if len(known) == len(named):
        action = _save(screen, spec.into, spec.fields(words, known))
    else:
        action = _GIVE_UP
    return _COMPACT.write(action, screen)


def _statement(screen: Observation, names: Sequence[str]) -> str:
    """All records of a pane that the goal names, such as ``in contacts ana silva has phone ...``.

    Empty if there are none.
    """
    wanted = re.compile(rf" ({'|'.join(map(re.escape, names))})[ ,]")
    return "; ".join(
        f"in {element.pane} {element.text} has {element.value}"
        for element in screen.elements
        if element.value is not None and wanted.search(f" {element.text}, {element.value}, ")
    )


def _known(decision: Decision, fact: Fact, name: str) -> str | None:
    """The value of a fact, from the messages or the view."""
    told = rf"in {fact.app} {re.escape(name)} has ([^;]*)"
    for heard in decision.heard:
        said = re.search(told, reason_of(heard.content, heard.prompt_format))
        if said is not None:
            return _field(said[1].strip(), fact.field)
    for element in decision.observation.elements:
        if element.pane == fact.app and element.text == name and element.value is not None:
            return _field(element.value, fact.field)
    return None


def _field(values: str, field: str) -> str | None:
    found = re.search(rf"(?:^|, ){field} ([^,]*)", values)
    return None if found is None else found[1]


def _save(screen: Observation, table: Table, fields: dict[str, str]) -> Action:
    """The next action towards the new record."""
    last = screen.history[-1] if screen.history else None
    if last is not None and last.role == "button" and last.label == table.save:
        return _DONE
    form = {e.text: e for e in screen.elements if e.pane == table.app and e.editable}
    for name, wanted in fields.items():
        if name in form and form[name].value != wanted:
            return Action(
                action_type="input_text", target=name, index=form[name].index, text=wanted
            )
    text = table.save if fields.keys() <= form.keys() else table.add
    for element in screen.elements:
        if element.text == text and element.clickable:
            return Action(action_type="click", target=text, index=element.index)
    return _GIVE_UP


@lru_cache(maxsize=4096)
def read_goal(text: str) -> tuple[SplitTemplate, dict[str, str]]:
    """The template of a goal, and the words of the placeholders.

    Raises:
        ConfigError: the text is not the goal of a split task.
    """
    goals = [(goal, spec) for spec in SPLIT_TEMPLATES.values() for goal in spec.goals]
    # The longest first: a placeholder of a shorter one could match the rest of a longer one.
    for goal, spec in sorted(goals, key=lambda pair: -len(pair[0])):
        parts = re.split(r"\{(\w+)\}", goal)
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = (f"(?P<{name}>{_WORDS})" for name in parts[1::2])
        found = re.fullmatch("".join(parts), text)
        if found is not None:
            return spec, found.groupdict()
    raise ConfigError(f"scripted agents: {text!r} is not the goal of a task of SplitPhone")
