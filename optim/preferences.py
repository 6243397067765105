"""Credit becomes examples: preference pairs and scored replies, with what each agent saw.

A right action of an agent is preferred to a wrong action that another agent proposed at this step,
or that an adversary wrote. A wrong action of an agent is rejected in favour of a right action of
another agent or, if no agent was right, of the action that a teacher showed.

Pairs contain whole replies. A reply of the agent itself is the exact text that it sent. Actions of
others are mapped into the agent's own view and written in its own prompt format: a colleague's with
the reason that it gave, a teacher's without one, and an adversary's with that of the preferred
reply, so that the two sides differ only in the action. An agent that sees a part of the screen also
learns an action on a hidden element that a message named to it.
"""

from __future__ import annotations

import math
import random
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

CreditMatrix = Sequence[Sequence[float | None]]
"""``[rounds, agents]`` as in ``StepRecord.credit``; ``None`` = unscored."""


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
    """In the indices of the agent's view; it may be a hidden element that a message named.
    ``None``: a reply with an advantage that holds no valid action."""
    rejected: Action | None = None
    """``None``: no wrong action is known, and only the likelihood of ``chosen`` is learned."""
    weight: float = 1.0
    """Credit of the chosen minus that of the rejected."""
    advantage: float | None = None
    """For a policy gradient: above 0 the reply becomes more probable, below 0 less. ``None``: this
    is a pair."""
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
"""The note of a step (:attr:`swarm_ui.trace.records.Episode.notes`): wrong actions that an
adversary wrote, and right ones that a teacher showed."""


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
        if episode.fault is not None:
            continue
        notes = episode.notes or (None,) * len(episode.steps)
        for record, note in zip(episode.steps, notes, strict=True):
            if record.credit is None:
                continue
            written = cast("Alternatives | None", note) or ((), ())
            for pair in _pairs_of(record, written, easy_share, draws):
                key = (pair.node, pair.decision, pair.chosen and pair.chosen.key)
                if key not in kept or _says(kept[key]) < _says(pair):
                    kept[key] = pair
    return list(kept.values())


def _says(pair: PreferencePair) -> tuple[bool, bool]:
    """Of equal pairs, one with a rejected action is preferred, or else with a rejected reply."""
    return pair.rejected is not None, pair.rejected_text is not None


def scored_replies(
    episodes: Sequence[Episode], credit: Sequence[Credit] | None = None
) -> list[PreferencePair]:
    """The replies of all scored steps whose advantage is not 0, in order, for a policy gradient.

    Advantages are ``StepRecord.advantages``. Where the source of the credit defines none, they are
    the credit relative to all messages on the same screen, of any agent and episode (the groups of
    GiGPO, arXiv 2505.10978), in standard deviations. Unscored messages and masked episodes are left
    out. For the arguments see :func:`preference_pairs`.
    """
    played = [e for e in _with_credit(episodes, credit) if e.success is not None]
    records = [record for episode in played for record in episode.steps]
    scored = [credit_by_message(r.trace, r.credit or ()) for r in records]
    screens, groups = [screen_key(r.trace.observation) for r in records], Groups()
    for screen, values in zip(screens, scored, strict=True):
        for value in values.values():
            groups.add(screen, value)
    found: list[PreferencePair] = []
    for record, screen, values in zip(records, screens, scored, strict=True):
        trace = record.trace
        if record.advantages is not None:
            advantages = credit_by_message(trace, record.advantages)
        else:
            advantages = {id: groups.standard(screen, value) for id, value in values.items()}
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
    """A pair for each message of a step: it is preferred if it was right, else rejected."""
    trace, (negatives, shown) = record.trace, written
    credit = credit_by_message(trace, record.credit or ())
    graded = scored_proposals(trace, record.credit or ())
    good = [_side(g, "colleague") for g in graded if g.credit > 0.5]
    good += [_side(g, "teacher") for g in shown if g.credit > 0.5]
    mistakes = [_side(g, "mistake") for g in graded if g.credit < 0.5]
    opposed = [_side(g, "adversary") for g in negatives if g.credit < 0.5]
    for call in trace.calls:
        message, value = call.message, credit.get(call.id, 0.5)
        if value == 0.5:  # unscored, or neither right nor wrong
            continue
        agent, reason = _Agent(trace, call), "" if message.action is None else reason_given(message)
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
            return (
                None if action is None else form.write(action, self.view.observation, side.reason)
            )

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


def _side(graded: ScoredAction, source: str) -> _Side:
    return _Side(graded.action, graded.credit, source, graded.reason)


def credit_by_message(trace: Trace, credit: CreditMatrix) -> dict[str, float]:
    """Credit by message id; unscored messages are absent."""
    given = {
        (round, agent): value
        for round, row in enumerate(credit)
        for agent, value in zip(trace.agents, row, strict=True)
    }
    values = {m.id: given.get((m.round, m.sender)) for m in trace.messages}
    return {id: value for id, value in values.items() if value is not None}


def scored_proposals(trace: Trace, credit: CreditMatrix) -> list[ScoredAction]:
    """Distinct scored proposals of a decision in the order they were made, with mean credit and
    the first reason that was given."""
    values = credit_by_message(trace, credit)
    found: dict[ActionKey, list[Message]] = {}
    for message in trace.messages:
        if message.action is not None and message.id in values:
            found.setdefault(message.action.key, []).append(message)
    return [
        ScoredAction(
            action=said[0].action,
            credit=sum(values[m.id] for m in said) / len(said),
            reason=next(filter(None, map(reason_given, said)), ""),
        )
        for said in found.values()
        if said[0].action is not None
    ]


def reason_given(message: Message) -> str:
    """The reason in a message that proposes an action; empty if it gives none."""
    return reason_of(message.content, message.prompt_format)


def unparsed(call: Call) -> bool:
    """Whether a message is a reply without a valid action. Failed calls and abstentions are not
    such replies."""
    message = call.message
    invalid = message.action is None and message.error is not None and call.error is None
    return invalid and bool(message.content or call.completion)  # a reply may be empty


def screen_key(observation: Observation) -> bytes:
    """A key of a screen: all of the observation but the history and the screenshot."""
    return msgspec.json.encode(msgspec.structs.replace(observation, history=(), png=None))


def with_label(action: Action, observation: Observation) -> Action:
    """The action with the label of its element as its target, so that a missing or different
    label does not mark it as wrong."""
    element = observation.element(action.index)
    target = element.label or None if element is not None else None
    return msgspec.structs.replace(action, target=target)


class Groups:
    """Values by group, and the distance of a value from the mean of its group."""

    def __init__(self) -> None:
        self._values: dict[object, list[float]] = {}
        self._known: dict[object, tuple[float, float]] = {}

    def add(self, group: object, value: float) -> None:
        self._values.setdefault(group, []).append(value)

    def standard(self, group: object, value: float) -> float:
        """In standard deviations, after all values were added; 0 in a group of equals."""
        if group not in self._known:
            values = self._values[group]
            equal = math.isclose(min(values), max(values))
            self._known[group] = fmean(values), math.inf if equal else pstdev(values)
        mean, spread = self._known[group]
        return (value - mean) / (spread + 1e-6)
