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
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Completion:
        assert request.decision is not None
        chat, text = as_chat(request, _COMPACT.chat), scripted_reply(request.decision)
        heard = sum(len(turn.content.split()) for turn in chat)
        return Completion(
            text=text,
            prompt=transcript(chat),
            usage=Usage(prompt_tokens=heard, completion_tokens=len(text.split())),
            model=self.name,
            prompt_format="compact",
        )


def scripted_reply(decision: Decision) -> str:
    """The reply of an agent in the compact format.

    Raises:
        ConfigError: the goal does not belong to a split task.
    """
    screen = decision.observation
    if decision.partial and not screen.elements:
        return _COMPACT.write(Abstain(), screen)
    spec, words = read_goal(screen.goal)
    names = [words[NAMES[k]] for k in range(len(spec.facts))]
    own = _statement(screen, names)
    if all(element.pane != spec.acting for element in screen.elements):
        return _COMPACT.write(Abstain(), screen, own)
    said = [reason_of(heard.content, heard.prompt_format) for heard in decision.heard]
    values = [_known(*one, [*said, own]) for one in zip(spec.facts, names, strict=True)]
    known = [value for value in values if value is not None]
    whole = len(known) == len(names)
    action = _save(screen, spec.into, spec.fields(words, known)) if whole else _GIVE_UP
    return _COMPACT.write(action, screen)


def _statement(screen: Observation, names: Sequence[str]) -> str:
    """All shown records that the goal names, such as ``in contacts ana silva has phone ...``.

    Empty if there are none.
    """
    wanted = re.compile(rf" ({'|'.join(map(re.escape, names))})[ ,]")
    return "; ".join(
        f"in {element.pane} {element.text} has {element.value}"
        for element in screen.elements
        if element.value is not None and wanted.search(f" {element.text}, {element.value}, ")
    )


def _known(fact: Fact, name: str, statements: Sequence[str]) -> str | None:
    """The value of a fact, from the first of the statements that has its record."""
    told = re.compile(rf"in {fact.app} {re.escape(name)} has (?:[^;]*, )?{fact.field} ([^,;]*)")
    return next((found[1].strip() for text in statements if (found := told.search(text))), None)


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
        pattern = re.sub(r"\\\{(\w+)\\\}", lambda at: f"(?P<{at[1]}>{_WORDS})", re.escape(goal))
        if found := re.fullmatch(pattern, text):
            return spec, found.groupdict()
    raise ConfigError(f"scripted agents: {text!r} is not the goal of a task of SplitPhone")
