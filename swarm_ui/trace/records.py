"""The records of a decision and of an episode. They are the main result of a run.

Written as JSON lines (:func:`write_jsonl`), one episode per line, with a version. A message
is stored once, in the call that produced it, and referred to by id; the screen is stored once per
decision, and each call keeps only the order in which its agent saw the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import msgspec

from swarm_ui.action import Action
from swarm_ui.agent_view import View
from swarm_ui.errors import Failure
from swarm_ui.message import Heard, Message, Usage
from swarm_ui.model import Decision, Generation
from swarm_ui.observation import Observation
from swarm_ui.topology import Edge

TRACE_VERSION = 1

_NO_USAGE = Usage()


class Call(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, repr_omit_defaults=True
):
    """One call of one node in one round."""

    message: Message
    """What the call produced. Its sender is the called node."""
    completion: Generation | None = None
    """How a model made the message; ``None``: no model answered."""
    heard: tuple[str, ...] = ()
    """Ids of the messages that the call received, in the order of its inbox."""
    order: tuple[int, ...] | None = None
    """Screen index of each element as shown to this agent; ``None``: the screen's own order."""
    temperature: float | None = None
    """The requested sampling temperature; ``None``: not chosen, see
    :attr:`swarm_ui.model.Request.temperature`."""
    seed: int = 0
    ballot: dict[str, float] | None = None
    """Weight of each proposal, if the node voted."""
    started: float = 0.0
    """Seconds since the run began."""
    ended: float = 0.0
    error: Failure | None = None
    """Why the call failed; its message is then a tombstone."""
    arguments: str = ""
    """Arguments of a tool call, as the model wrote them; empty for other calls."""
    step: int | None = None
    """Number, from 0, of a step inside a node's call, such as a turn of a conversation or an item
    of a map; ``None``: the call of a node, nested or not."""

    @property
    def id(self) -> str:
        """Id of the message."""
        return self.message.id

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.message.sender

    @property
    def round(self) -> int:
        return self.message.round

    @property
    def reply(self) -> str:
        """What the model replied; empty if no model answered."""
        return self.message.content if self.completion else ""

    @property
    def prompt(self) -> str:
        """The exact prompt as the model read it; empty if no model answered."""
        return self.completion.prompt if self.completion else ""

    @property
    def model(self) -> str:
        """Name of the model that answered; empty if none did."""
        return self.completion.model if self.completion else ""

    @property
    def adapter(self) -> str | None:
        """Adapter and version that answered; ``None``: the base model, or no model answered."""
        return self.completion.adapter if self.completion else None

    @property
    def usage(self) -> Usage:
        """Tokens of the call; 0 if no model answered."""
        return self.completion.usage if self.completion else _NO_USAGE


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision: the observation, the edges, every message and call, and the action."""

    run: str
    seed: int
    observation: Observation
    agents: tuple[str, ...]
    rounds: int
    """Number of rounds that were made."""
    ended_by: str = ""
    """Name of the predicate that ended the rounds early; empty: all rounds were made."""
    edges: tuple[Edge, ...] = ()
    """Edges between agents, as (sender, receiver)."""
    delays: tuple[int, ...] = ()
    """For each of ``edges``, how many rounds later it delivers; empty: all in the same round."""
    calls: tuple[Call, ...] = ()
    """Every call with its message, in the order of the unrolled graph."""
    skipped: tuple[str, ...] = ()
    """Ids of the messages of skipped calls: no edge delivered a message to their nodes."""
    ballot: dict[str, float] = {}
    """Weight of each proposal in the vote of the output, keyed by the action's JSON."""
    output_id: str = ""
    """Id of the last message of the output node; empty: it has not answered."""
    action: Action | None = None
    """The decision; ``None`` if no node proposed a valid action."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of all calls, in the same order."""
        return tuple([call.message for call in self.calls])

    @property
    def output(self) -> str | None:
        """Content of the last message of the output node; ``None`` where ``output_id`` is empty."""
        return self.message(self.output_id).content if self.output_id else None

    @property
    def undecided(self) -> str | None:
        """Why there is no decision, counted; ``None`` if there is one."""
        if self.action is not None:
            return None
        agents = frozenset(self.agents)
        asked = [call for call in self.calls if call.node in agents]
        failed = sum(call.error is not None for call in asked)
        answers = [call.message for call in asked if call.error is None]
        valid = sum(message.action is not None for message in answers)
        passed = len(self.passed)
        invalid = len(answers) - valid - passed
        never = f", {passed} passed" if passed else ""
        never += f", {len(self.skipped)} skipped" if self.skipped else ""
        return (
            f"no decision: of {len(asked)} answers {valid} proposed a valid action, {invalid} "
            f"proposed none, {failed} failed{never}"
        )

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the agents' messages that are abstentions."""
        agents = frozenset(self.agents)
        return tuple(m.id for m in self.messages if m.sender in agents and m.abstains)

    @property
    def immediate(self) -> tuple[Edge, ...]:
        """The edges that deliver a message in the same round; they are acyclic."""
        if not self.delays:
            return self.edges
        return tuple(e for e, delay in zip(self.edges, self.delays, strict=True) if not delay)

    def message(self, id: str) -> Message:
        """The message with that id. Raises ``KeyError`` if there is none."""
        for call in self.calls:
            if call.message.id == id:
                return call.message
        near = get_close_matches(id, [m.id for m in self.messages], n=6, cutoff=0.3)
        raise KeyError(f"no message '{id}' in this trace; near it are {', '.join(near) or 'none'}")

    def recorded(self) -> dict[str, Call]:
        """The calls, by the id of their message."""
        return {call.message.id: call for call in self.calls}

    def view(self, call: Call) -> View:
        """The screen as the agent of this call saw it."""
        return View(self.observation, call.order)

    def decision(self, call: Call | str) -> Decision:
        """The exact context of a call: the agent's view of the screen, and its messages.

        ``call``: a call of this trace, or the id of its message. Raises ``KeyError`` if there is
        no such message.
        """
        if isinstance(call, str):
            id = self.message(call).id
            call = self.recorded()[id]
        _, found = context_of(call, self.observation, [self.message(id) for id in call.heard])
        if "/item:" in call.id:  # the goal of a run of a map is its item
            around = [m for m in self.messages if call.id.startswith(f"{m.id}/")]
            goal = max((m for m in around if m.sender.endswith("/item")), key=lambda m: len(m.id))
            screen = msgspec.structs.replace(found.observation, goal=goal.content)
            found = msgspec.structs.replace(found, observation=screen)
        return found

    def __repr__(self) -> str:
        """One line: the run, its size, what failed, and the result."""
        failed = sum(call.error is not None for call in self.calls)
        parts = [
            f"'{self.run}'" if self.run else "",
            _counted(len(self.agents), "agent"),
            _counted(self.rounds, "round") + (f" (until {self.ended_by})" * bool(self.ended_by)),
            _counted(len(self.calls), "call"),
            f"{failed} failed" if failed else "",
            f"{len(self.skipped)} skipped" if self.skipped else "",
            f"action {self.action}" if self.action is not None else self._result(),
        ]
        return f"Trace({', '.join(filter(None, parts))})"

    def _result(self) -> str:
        """The output of a decision without an action, on one line."""
        text = "" if self.output is None else " ".join(self.output.split())
        return f"output {text[:57] + '...' if len(text) > 60 else text!r}" if text else "no output"

    def _repr_svg_(self) -> str:
        return DRAW["svg"](self)

    def _repr_html_(self) -> str:
        return DRAW["html"](self)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


DRAW: dict[str, Callable[[Trace], str]] = {}
"""The function that draws traces in notebooks. It imports the records, so ``swarm_ui`` sets it."""


class StepRecord(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """One step of an episode: the decision, its result, and the credit assigned later."""

    trace: Trace
    executed: Action | None = None
    """The executed action: the decision, or another action in a guided rollout."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    note: str = ""
    credit: tuple[tuple[float | None, ...], ...] | None = None
    """Credit of each message, ``[rounds, agents]``; ``None`` = unscored, which is not 0."""
    advantages: tuple[tuple[float | None, ...], ...] | None = None
    """Advantage of each message, any number, for credit that defines one (such as GiGPO);
    ``None``: the credit is compared with that of a group."""
    credit_source: str = ""
    """The source of the credit; empty: not known."""
    rationale: tuple[str, ...] = ()
    """The reasons that the source of the credit gave, a text for each round; may be empty."""


class Episode(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A task attempted once."""

    environment: str
    checker: int = 1
    """Version of the environment's success check; episodes from before it was kept count as 1."""
    task: str
    seed: int
    policy: str = ""
    """Name of the policy for tables, such as ``"base greedy"`` or ``"trained team"``."""
    steps: tuple[StepRecord, ...] = ()
    success: bool | None = None
    """``None`` if an infrastructure fault masked the episode."""
    fault: Failure | None = None
    """The failure of the environment or the infrastructure; ``None`` if there was none."""
    seconds: float = 0.0
    notes: tuple[Any, ...] = ()
    """What the intervention noted at each step; objects of this process, which files leave out."""


def context_of(call: Call, screen: Observation, heard: Iterable[Message]) -> tuple[View, Decision]:
    """What an agent saw of a screen and of the messages that its call received."""
    view = View(screen, call.order)
    decision = Decision(
        observation=view.observation,
        heard=tuple(hear(message, view, listener=call.node) for message in heard),
        partial=view.partial,
        dropped=call.completion.dropped if call.completion else None,
    )
    return view, decision


def hear(message: Message, view: View, *, listener: str) -> Heard:
    """A message as the receiver sees it, with its action in the indices of the receiver's view."""
    action = None if message.action is None else view.from_screen_with_hidden(message.action)
    return Heard(
        sender=message.sender,
        round=message.round,
        content=message.content if message.error is None else f"[failed: {message.error}]",
        action=action,
        own=message.sender == listener,
        prompt_format=message.prompt_format,
    )
