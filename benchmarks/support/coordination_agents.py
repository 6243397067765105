"""Scripted agents for the problems of coordination: lower and upper bounds.

:func:`distributed` is a distributed algorithm for each kind, :func:`silent` the first answers of
these algorithms, without any message. A scripted model gets the decision of one agent, as a
language model does, and keeps nothing between calls: an agent knows only its rows of the screen,
its own last message, and those of its neighbours. Statements of other forms are ignored.

Each algorithm computes one round of one agent in the LOCAL model (Linial 1992; Peleg 2000). A
message states everything that the agent has to remember.

===========  ====================================================================
colouring    random trials (Johansson 1999): an agent tries a colour, and keeps it if no neighbour
             has it or tries it with a higher priority
consensus    flooding: the number of the agent with the last name in the alphabet
leader       flooding: the last name in the alphabet
matching     every agent without a partner asks the neighbour at its edge of the highest
             priority; two who ask each other are a pair (locally heaviest edges)
cover        the agents outside of a maximal independent set (Luby 1986): an agent is in the set
             if it has the highest priority among its undecided neighbours
===========  ====================================================================
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.errors import ModelError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.node import derive
from swarm_ui.prompts import reason_of

_COLOUR = re.compile(r"I (try|keep) (\d{1,4})\b")
_NUMBER = re.compile(r"(\w+) has (\d{1,9})\b")
_LEADER = re.compile(r"The last name is (\w+)")
_PARTNER = re.compile(r"I (ask|am with) (\w+)")
_COVER = re.compile(r"I am (in|out|undecided)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The information that one agent has in one round."""

    name: str
    neighbours: tuple[str, ...]
    number: str
    """The number that the agent holds; empty if it holds none."""
    colours: int
    """The number of colours; 0: the problem has none."""
    round: int
    """Number of the round, from 0."""
    own: str
    """The agent's own message of the last round; empty in round 0."""
    heard: Mapping[str, str]
    """The messages of neighbours, by their names."""
    rng: random.Random


Algorithm = Callable[[Knowledge], tuple[str, str]]
"""Computes one round of an agent: ``knowledge -> (message, answer)``."""


def _priority(*what: str | int) -> int:
    """A random number that all agents know, since it depends only on the arguments."""
    return derive(0, "priority", *what)


def colouring(known: Knowledge) -> tuple[str, str]:
    """One round of random trials."""
    colours = range(1, known.colours + 1)
    stated = {name: found for name, text in known.heard.items() if (found := _COLOUR.search(text))}
    kept = {int(found[2]) for found in stated.values() if found[1] == "keep"}
    tried = {name: int(found[2]) for name, found in stated.items() if found[1] == "try"}
    own = _COLOUR.search(known.own)
    if own is None:  # round 0: the rank of its name, so that a complete network is done at once
        colour = 1 + sum(other < known.name for other in known.neighbours)
        return f"I try {colour}.", str(colour)
    colour, rank = int(own[2]), _priority(known.name)
    rivals = {c for name, c in tried.items() if _priority(name) > rank}
    if own[1] == "keep" or colour not in kept | rivals:
        return f"I keep {colour}.", str(colour)
    free = [c for c in colours if c not in kept | rivals] or [c for c in colours if c not in kept]
    colour = known.rng.choice(free or list(colours))
    return f"I try {colour}.", str(colour)


def consensus(known: Knowledge) -> tuple[str, str]:
    """One round of flooding a number."""
    found = [(known.name, known.number)]
    for text in (known.own, *known.heard.values()):
        found += [(name, number) for name, number in _NUMBER.findall(text)]
    name, number = max(found)
    return f"{name} has {number}.", number


def leader(known: Knowledge) -> tuple[str, str]:
    """One round of flooding a name."""
    found = [known.name, *known.neighbours]
    for text in (known.own, *known.heard.values()):
        found += _LEADER.findall(text)
    last = max(found)
    return f"The last name is {last}.", "yes" if last == known.name else "no"


def matching(known: Knowledge) -> tuple[str, str]:
    """One round of asking the neighbour at the heaviest edge."""
    own = _PARTNER.search(known.own)
    stated = {name: found for name, text in known.heard.items() if (found := _PARTNER.search(text))}
    asked = {name: found[2] for name, found in stated.items() if found[1] == "ask"}
    if own is not None and own[1] == "am with":
        return f"I am with {own[2]}.", own[2]
    if own is not None and asked.get(own[2]) == known.name:
        return f"I am with {own[2]}.", own[2]
    taken = {name for name, found in stated.items() if found[1] == "am with"}
    taken |= {name for name, other in asked.items() if asked.get(other) == name}
    free = [name for name in known.neighbours if name not in taken]
    if not free:
        return "I am alone.", "none"
    other = max(free, key=lambda n: _priority(*sorted((n, known.name)), known.round))
    return f"I ask {other}.", other


def cover(known: Knowledge) -> tuple[str, str]:
    """One round of Luby's algorithm. The cover is everybody outside of the independent set."""
    own = _COVER.search(known.own)
    if own is not None and own[1] != "undecided":
        return f"I am {own[1]}.", "yes" if own[1] == "out" else "no"
    stated = {name: found[1] for name, text in known.heard.items()
              if (found := _COVER.search(text))}  # fmt: skip
    if "in" in stated.values():
        return "I am out.", "yes"
    rank = _priority(known.name, known.round)
    undecided = [name for name in known.neighbours if stated.get(name) != "out"]
    if all(_priority(name, known.round) < rank for name in undecided):
        return "I am in.", "no"
    return "I am undecided.", "yes"


ALGORITHMS: Mapping[str, Algorithm] = {
    "colouring": colouring,
    "consensus": consensus,
    "leader": leader,
    "matching": matching,
    "cover": cover,
}


@dataclass(frozen=True, slots=True)
class ScriptedAgents:
    """A :class:`~swarm_ui.model.ChatModel` that plays all agents of a problem, by a script."""

    name: str
    talks: bool
    """Whether it sends messages; if not, its answers are those of round 0."""

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
        known = knowledge_of(decision, random.Random(request.seed), talks=self.talks)
        message, answer = ALGORITHMS[decision.observation.app](known)
        text = Action(action_type="answer", text=answer).json()
        if self.talks:
            text = f"Reason: Round {known.round + 1}: {message}\nAction: {text}"
        return Completion(text=text, prompt="", model=self.name)


def knowledge_of(decision: Decision, rng: random.Random, *, talks: bool) -> Knowledge:
    """The information that is available to the deciding agent; without messages unless it talks.

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
    heard = decision.heard if talks else ()
    own = next((each for each in heard if each.own), None)
    colours = "".join(rows.get("colours", ())).rpartition(" ")[2]  # 5 in "1 to 5"
    return Knowledge(
        name=names[0],
        neighbours=neighbours,
        number=rows.get("your number", [""])[0],
        colours=int(colours) if colours.isdecimal() else 0,
        round=0 if own is None else own.round + 1,
        own="" if own is None else reason_of(own.content, own.prompt_format),
        heard={
            each.sender: reason_of(each.content, each.prompt_format)
            for each in heard
            if each.sender in neighbours
        },
        rng=rng,
    )


def distributed() -> ScriptedAgents:
    """The upper bound: distributed algorithms that use only the messages."""
    return ScriptedAgents("scripted, distributed algorithm", True)


def silent() -> ScriptedAgents:
    """A lower bound: the algorithms' answers of round 0, without messages."""
    return ScriptedAgents("scripted, silent", False)
