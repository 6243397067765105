"""The proposals of all agents, each with its advantage over its group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.optim.credit.assigners.normalise import By, normalise
from swarm_ui.optim.preferences.grading import credit_by_message
from swarm_ui.trace.records import Episode


class ScoredReply(msgspec.Struct, frozen=True, kw_only=True):
    """One proposal, which should become more or less probable in its context."""

    node: str
    decision: Decision
    """The context, in the agent's own view."""
    reply: Action
    """The action, in the agent's own indices."""
    advantage: float
    """Credit relative to the group; above 0: better than the group."""
    source: str = "own"


def scored_replies(
    episodes: Sequence[Episode], *, by: By = "state", scale: bool = True
) -> list[ScoredReply]:
    """The proposals of all scored steps whose advantage is not 0, in order.

    Replies without a valid action are left out, because the model is trained on actions in their
    canonical form. Unscored messages and masked episodes are left out too.

    Args:
        episodes: episodes whose ``StepRecord.credit`` is set.
        by: the group of a message. ``state``: all messages on the same screen, of any agent and
            episode (groups of GiGPO, arXiv 2505.10978).
        scale: divide by the group's standard deviation.
    """
    advantages = normalise(episodes, by=by, scale=scale)
    found: list[ScoredReply] = []
    for episode, steps in zip(episodes, advantages.values, strict=True):
        for record, matrix in zip(episode.steps, steps, strict=True):
            trace = record.trace
            scored = credit_by_message(trace, matrix or ())
            for call in trace.calls:
                value, said = scored.get(call.message), trace.message(call.message).action
                own = None if said is None else trace.view(call).from_screen(said)
                if own is not None and value:
                    decision = trace.decision(call)
                    found.append(
                        ScoredReply(node=call.node, decision=decision, reply=own, advantage=value)
                    )
    return found
