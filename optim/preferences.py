"""Credit becomes examples: preference pairs and scored replies, with what each agent saw.

A right action of an agent is preferred to a wrong action that another agent proposed at this step,
or that an adversary wrote. A wrong action of an agent is rejected in favour of a right action of
another agent or, if no agent was right, of the action that a teacher showed.

Pairs contain whole replies. The agent's own is the exact text that it sent. Actions of others are
written in its own view and prompt format: a colleague's with the reason that it gave, a teacher's
without one, and an adversary's with that of the preferred reply, so that the sides differ only in
the action. An agent that sees a part of the screen also learns an action on a hidden element that a
message named to it.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple, cast

import msgspec
from msgspec.structs import force_setattr

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import Credit, credited
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.prompts import format_named, reason_of
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace


class ScoredAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action in the indices of the whole screen, with its credit."""

    action: Action
    credit: float
    reason: str = ""
    """The reason that an agent gave for it; empty: none is known."""


class PreferencePair(msgspec.Struct, frozen=True, kw_only=True):
    """A context with a preferred and a rejected reply, or one reply with its advantage."""

    node: str
    decision: Decision
    """The context, in the agent's own view."""
    chosen: Action | None
    """In the indices of the agent's view, perhaps of a hidden element that a message named."""
    rejected: Action | None = None
    """``None``: no wrong action is known, and only the likelihood of ``chosen`` is learned."""
    weight: float = 1.0
    """Credit of the chosen minus that of the rejected."""
    advantage: float | None = None
    """Above 0 a policy gradient makes the reply more probable. ``None``: this is a pair."""
    source: str = ""
    """Source of each side, such as ``"own > adversary"``."""
    chosen_text: str = ""
    """The exact reply. Default: the action as JSON, the whole reply of the embedded agent."""
    rejected_text: str | None = None
    """The rejected reply, which may hold no valid action; ``None``: there is no rejected side."""
    sampled: tuple[int, ...] = ()
    """Token ids of the chosen reply, if the text does not determine them."""
    prompt: str = ""
    """The exact prompt of the call, as the agent's model read it; empty: there was no call."""
    prompt_format: str = "json"
    """The format of both replies, see :mod:`swarm_ui.prompts`."""

    def __post_init__(self) -> None:
        if not self.chosen_text and self.chosen is not None:
            force_setattr(self, "chosen_text", self.chosen.json())
        if self.rejected is not None and self.rejected_text is None:
            force_setattr(self, "rejected_text", self.rejected.json())


Alternatives = tuple[Sequence[ScoredAction], Sequence[ScoredAction]]
"""The note of a step: wrong actions that an adversary wrote, and right ones of a teacher."""


def preference_pairs(
    episodes: Sequence[Episode],
    credit: Sequence[Credit] | None = None,
    *,
    easy_share: float = 0.35,
    rng: random.Random | None = None,
) -> list[PreferencePair]:
    """All pairs from all rounds of the scored steps, one for each agent, context and chosen action.

    A message with credit above one half is right, and below it wrong. Steps and messages without
    credit are skipped, because unscored does not mean wrong. Masked episodes are skipped too.

    Args:
        episodes: what was played, with the notes of adversary and teacher, if there were any.
        credit: one record for each episode; ``None``: the credit that the episodes hold.
        easy_share: share of the right messages that are kept at steps where no agent was wrong.
        rng: chooses among several actions for the other side; default: the stream of seed 0.
    """
    draws, kept = rng or random.Random(0), dict[tuple[object, ...], PreferencePair]()
    for episode in _with_credit(episodes, credit):
        for record, written in () if episode.fault else with_alternatives(episode):
            for pair in _pairs_of(record, written, easy_share, draws):
                key = (pair.node, pair.decision, pair.chosen and pair.chosen.key)
                # Of equal pairs, one with a rejected action is kept, or else the first one.
                if key not in kept or (pair.rejected and not kept[key].rejected):
                    kept[key] = pair
    return list(kept.values())


def scored_replies(
    episodes: Sequence[Episode], credit: Sequence[Credit] | None = None
) -> list[PreferencePair]:
    """The replies of all scored steps whose advantage is not 0, in order, for a policy gradient.

    Where the source of the credit defines no advantages, they are the credit relative to all
    messages on the same screen, of any agent and episode (the groups of GiGPO, arXiv 2505.10978),
    in standard deviations. Unscored messages and masked episodes are left out. For the arguments
    see :func:`preference_pairs`.
    """
    played = [e for e in _with_credit(episodes, credit) if e.success is not None]
    records = [record for episode in played for record in episode.steps]
    screens, groups = [screen_key(r.trace.observation) for r in records], Groups()
    for screen, record in zip(screens, records, strict=True):
        for value in credit_by_message(record).values():
            groups[screen].append(value)
    found: list[PreferencePair] = []
    for screen, record in zip(screens, records, strict=True):
        trace, advantages = record.trace, credit_by_message(record, advantages=True)
        if record.advantages is None:
            given = credit_by_message(record)
            advantages = {id: groups.standard(screen, value) for id, value in given.items()}
        for call in trace.calls:
            said, made = call.message.action, call.completion
            own = None if said is None else trace.view(call).from_screen_with_hidden(said)
            value = advantages.get(call.id, 0.0)
            if value and (own is not None or unparsed(call)):
                found.append(
                    PreferencePair(
                        node=call.node, decision=trace.decision(call), chosen=own, advantage=value,
                        source="own", chosen_text=call.message.content,
                        sampled=made.sampled if made else (),
                    )
                )  # fmt: skip
    return found


def _with_credit(episodes: Sequence[Episode], credit: Sequence[Credit] | None) -> Sequence[Episode]:
    if credit is None:
        return episodes
    return [credited(episode, given) for episode, given in zip(episodes, credit, strict=True)]


def with_alternatives(episode: Episode) -> Iterator[tuple[StepRecord, Alternatives]]:
    """The steps with what adversary and teacher wrote there."""
    notes = episode.notes or (None,) * len(episode.steps)
    for record, note in zip(episode.steps, notes, strict=True):
        yield record, cast("Alternatives | None", note) or ((), ())


class _Side(NamedTuple):
    """One side of a pair: an action of the screen, or only words, with its credit."""

    action: Action | None
    credit: float
    source: str
    reason: str = ""
    text: str | None = None
    """The exact reply, if the agent itself sent it."""


def _pairs_of(
    record: StepRecord, written: Alternatives, easy_share: float, rng: random.Random
) -> Iterator[PreferencePair]:
    trace, credit, (negatives, shown) = record.trace, credit_by_message(record), written
    given = {"colleague": scored_proposals(record), "teacher": shown, "adversary": negatives}
    sides = [_Side(g.action, g.credit, s, g.reason) for s, some in given.items() for g in some]
    good = [side for side in sides if side.credit > 0.5 and side.source != "adversary"]
    bad = [side for side in sides if side.credit < 0.5]
    mistakes = [side._replace(source="mistake") for side in bad if side.source == "colleague"]
    opposed = [side for side in bad if side.source == "adversary"]
    for call in trace.calls:
        message, value = call.message, credit.get(call.id, 0.5)
        if value == 0.5:  # unscored, or neither right nor wrong
            continue
        agent, reason = _Agent(trace, call), ""
        if message.action is not None:
            reason = reason_of(message.content, message.prompt_format)
        own = _Side(message.action, value, "own", reason, message.content)
        if value < 0.5:
            chosen = agent.pick(good, own, rng)
            if chosen is not None:
                yield agent.pair(chosen, own)
        elif own.action and (mistakes or rng.random() < easy_share):
            # The sides of a pair with the adversary differ only in the action.
            alike = [side._replace(reason=reason) for side in opposed]
            other = agent.pick(mistakes or alike, own, rng)
            if agent.numbered(own.action) is not None:
                yield agent.pair(own, other)


class _Agent:
    """The agent of a call: what it can refer to, and how it writes it."""

    def __init__(self, trace: Trace, call: Call) -> None:
        self.call, self.view, self.decision = call, trace.view(call), trace.decision(call)

    def numbered(self, action: Action | None) -> Action | None:
        """The action in the indices of the agent's view; ``None``: the agent neither sees its
        element nor got a message that names it."""
        shown = None if action is None else self.view.from_screen(action)
        if action is None or shown is not None or not self.view.partial:
            return shown
        told = self.view.from_screen_with_hidden(action)
        return told if told is not None and self.decision.reaches(told) else None

    def pick(self, sides: Sequence[_Side], own: _Side, rng: random.Random) -> _Side | None:
        """A random one of the sides with another action that this agent can refer to."""
        key = own.action and own.action.key
        able = [s for s in sides if s.action and s.action.key != key and self.numbered(s.action)]
        return rng.choice(able) if able else None

    def pair(self, chosen: _Side, rejected: _Side | None) -> PreferencePair:
        form, call = format_named(self.call.message.prompt_format), self.call
        good, bad = (self.numbered(side and side.action) for side in (chosen, rejected))

        def text(side: _Side, action: Action | None) -> str | None:
            if side.text is not None:  # a call that failed said nothing
                return side.text if action or unparsed(call) else None
            screen = self.view.observation
            return None if action is None else form.write(action, screen, side.reason)

        return PreferencePair(
            node=call.node,
            decision=self.decision,
            chosen=good,
            rejected=bad,
            weight=chosen.credit - (rejected.credit if rejected and bad is not None else 0.0),
            source=f"{chosen.source} > {'nothing' if rejected is None else rejected.source}",
            chosen_text=text(chosen, good) or "",
            rejected_text=None if rejected is None else text(rejected, bad),
            prompt=call.prompt,
            prompt_format=form.name,
        )


def credit_by_message(record: StepRecord, *, advantages: bool = False) -> dict[str, float]:
    """Credit, or advantages, by message id; unscored messages are absent."""
    trace, table = record.trace, record.advantages if advantages else record.credit
    place = {agent: k for k, agent in enumerate(trace.agents)}
    found = {
        m.id: table[m.round][place[m.sender]]
        for m in trace.messages
        if table and m.sender in place and m.round < len(table)
    }
    return {id: value for id, value in found.items() if value is not None}


def scored_proposals(record: StepRecord) -> list[ScoredAction]:
    """Distinct scored proposals in their order, with mean credit and the first reason given."""
    values = credit_by_message(record)
    found: dict[ActionKey, list[tuple[Action, Message]]] = {}
    for message in record.trace.messages:
        if message.action is not None and message.id in values:
            found.setdefault(message.action.key, []).append((message.action, message))
    return [
        ScoredAction(
            action=said[0][0],
            credit=sum(values[m.id] for _, m in said) / len(said),
            reason=next(filter(None, (reason_of(m.content, m.prompt_format) for _, m in said)), ""),
        )
        for said in found.values()
    ]


def unparsed(call: Call) -> bool:
    """Whether a message is a reply without a valid action, and no failed call or abstention."""
    message = call.message
    invalid = message.action is None and message.error is not None and call.error is None
    return invalid and bool(message.content or call.completion)  # a reply may be empty


def screen_key(observation: Observation) -> bytes:
    """A key of a screen: all of the observation but the history and the screenshot."""
    return msgspec.json.encode(msgspec.structs.replace(observation, history=(), png=None))


def with_label(action: Action, observation: Observation) -> Action:
    """The action with the label of its element as its target, so that none marks it as wrong."""
    element = observation.element(action.index)
    target = element.label or None if element is not None else None
    return msgspec.structs.replace(action, target=target)


class Groups(defaultdict[object, list[float]]):
    """Values by group, and the distance of a value from the mean of its group."""

    def __init__(self) -> None:
        super().__init__(list)
        self._known: dict[object, tuple[float, float]] = {}

    def standard(self, group: object, value: float) -> float:
        """In standard deviations, after all values were added; 0 in a group of equals."""
        if group not in self._known:
            values = self[group]
            equal = math.isclose(min(values), max(values))
            self._known[group] = fmean(values), math.inf if equal else pstdev(values)
        mean, spread = self._known[group]
        return (value - mean) / (spread + 1e-6)
