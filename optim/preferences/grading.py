"""Credit by message and by action."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.message import Message
from swarm_ui.prompts import format_named
from swarm_ui.trace.records import Call, Trace

CreditMatrix = Sequence[Sequence[float | None]]
"""``[rounds, agents]`` as in ``StepRecord.credit``; ``None`` = unscored."""


class ScoredAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action in the indices of the whole screen, with its credit."""

    action: Action
    credit: float
    reason: str = ""
    """The reason that an agent gave for it; empty: none is known."""


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
    return format_named(message.prompt_format).reason(message.content)


def unparsed(trace: Trace, call: Call) -> bool:
    """Whether a message is a reply without a valid action. Failed calls and abstentions are not
    such replies."""
    message = trace.message(call.message)
    invalid = message.action is None and message.error is not None and call.error is None
    return invalid and bool(message.content or call.prompt)  # a reply may be empty
