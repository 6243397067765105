"""Scripted agents for the problems of coordination: lower and upper bounds.

A scripted model answers as a language model does: it gets the decision of one agent, which is the
agent's own rows of the screen and the messages it received, and replies in the format ``json``. It
keeps nothing between calls, so an agent knows only what it sees, its own last message, and the last
messages of its neighbours.

- :func:`distributed`: an upper bound, a distributed algorithm for each kind
  (:mod:`swarm_ui.environments.coordination.algorithms`);
- :func:`silent`: a lower bound, the first answers of these algorithms, without any message;
- :func:`guessing`: a lower bound, answers at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.environments.coordination.algorithms import ALGORITHMS, Knowledge, guess
from swarm_ui.errors import ModelError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.prompts import reason_of

Play = Callable[[str, Knowledge], tuple[str, str]]
"""Computes one round of an agent for a kind of problem: ``(kind, knowledge) -> (message,
answer)``."""


@dataclass(frozen=True, slots=True)
class ScriptedAgents:
    """A :class:`~swarm_ui.model.ChatModel` that plays all agents of a problem, by a script."""

    name: str
    play: Play

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One reply for each request; the prompt of each is empty, because a scripted agent reads
        no text.

        Raises:
            ModelError: a request does not contain the decision of one agent in a coordination
                problem.
        """
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Completion:
        decision = request.decision
        if decision is None or decision.observation.app not in ALGORITHMS:
            raise ModelError(f"{self.name}: expected a screen of the environment 'coordination'")
        kind = decision.observation.app
        message, answer = self.play(kind, knowledge_of(decision, random.Random(request.seed)))
        action = Action(action_type="answer", text=answer).json()
        text = f"Reason: {message}\nAction: {action}" if message else action
        return Completion(text=text, prompt="", model=self.name)


def knowledge_of(decision: Decision, rng: random.Random) -> Knowledge:
    """The information that is available to the deciding agent.

    Raises:
        ModelError: the screen does not show one agent.
    """
    rows: dict[str, list[str]] = {}
    for element in decision.observation.elements:
        rows.setdefault(element.text, []).append(element.value or "")
    names, neighbours = rows.get("your name", []), tuple(rows.get("neighbour", ()))
    if len(names) != 1:
        raise ModelError(
            f"a scripted agent of coordination sees itself and its neighbours; this screen shows "
            f"{len(names)} agents. Play it with CoordinationPolicy"
        )
    own = next((heard for heard in decision.heard if heard.own), None)
    said = {
        heard.sender: reason_of(heard.content, heard.prompt_format)
        for heard in decision.heard
        if heard.sender in neighbours
    }
    return Knowledge(
        name=names[0],
        neighbours=neighbours,
        number=rows.get("your number", [""])[0],
        colours=_last_number(rows),
        round=0 if own is None else own.round + 1,
        own="" if own is None else reason_of(own.content, own.prompt_format),
        heard=said,
        rng=rng,
    )


def _last_number(rows: Mapping[str, Sequence[str]]) -> int:
    """The last number in the row of colours, such as 5 in ``1 to 5``; 0: the problem has no
    colours."""
    last = "".join(rows.get("colours", ())).rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


def _algorithm(kind: str, known: Knowledge) -> tuple[str, str]:
    message, answer = ALGORITHMS[kind](known)
    return f"Round {known.round + 1}: {message}", answer


def _first_answer(kind: str, known: Knowledge) -> tuple[str, str]:
    return "", ALGORITHMS[kind](known.at_first())[1]


def _guess(kind: str, known: Knowledge) -> tuple[str, str]:
    return "", guess(kind, known)


def distributed() -> ScriptedAgents:
    """The upper bound: distributed algorithms that use only the messages."""
    return ScriptedAgents("scripted, distributed algorithm", _algorithm)


def silent() -> ScriptedAgents:
    """A lower bound: the algorithms' answers of round 0, without messages."""
    return ScriptedAgents("scripted, silent", _first_answer)


def guessing() -> ScriptedAgents:
    """A lower bound: random answers, without messages."""
    return ScriptedAgents("scripted, random answers", _guess)
