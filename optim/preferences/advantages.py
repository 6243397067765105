"""The replies of all agents, each with its advantage over its group."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import force_setattr

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.optim.preferences.grading import credit_by_message, unparsed
from swarm_ui.optim.preferences.normalise import By, normalise
from swarm_ui.trace.records import Episode


class ScoredReply(msgspec.Struct, frozen=True, kw_only=True):
    """One reply with its context.

    The update makes it more probable if its advantage is above 0, and less probable if below.
    """

    node: str
    decision: Decision
    """The context, in the agent's own view."""
    reply: Action | None
    """Action of the reply, in the indices of the agent's view; ``None``: no valid one. An agent
    that sees a part of the screen may also name a hidden element."""
    advantage: float
    """Credit relative to the group; above 0: better than the group."""
    source: str = "own"
    text: str = ""
    """The exact text of the reply. Default: the action as JSON, which is the whole reply of the
    embedded agent."""
    sampled: tuple[int, ...] = ()
    """Token ids of the reply, if the text does not determine them; see
    :attr:`swarm_ui.model.Completion.sampled`."""
    logprob: float | None = None
    """Log-probability (nats) of the reply under the acting weights; ``None``: not recorded. The
    update uses it if the reply is stale."""
    staleness: int = 0
    """Number of updates by which the acting weights lag behind the learning weights."""

    def __post_init__(self) -> None:
        if not self.text and self.reply is not None:
            force_setattr(self, "text", self.reply.json())


def scored_replies(
    episodes: Sequence[Episode], *, by: By = "state", scale: bool = True
) -> list[ScoredReply]:
    """The replies of all scored steps whose advantage is not 0, in order.

    The advantages of a step are ``StepRecord.advantages``, as they are. Where the source of the
    credit defines none, they are the credit relative to a group.

    Each is the exact text that was sampled. Its token ids are included if tokenising the text again
    would give other ids. Unscored messages and masked episodes are left out.

    Args:
        episodes: episodes whose ``StepRecord.credit`` is set.
        by: the group of a message. ``state``: all messages on the same screen, of any agent and
            episode (groups of GiGPO, arXiv 2505.10978).
        scale: divide by the group's standard deviation.
    """
    advantages = normalise(episodes, by=by, scale=scale)
    found: list[ScoredReply] = []
    for episode, steps in zip(episodes, advantages.values, strict=True):
        if episode.success is None:
            continue
        for record, matrix in zip(episode.steps, steps, strict=True):
            trace = record.trace
            scored = credit_by_message(trace, record.advantages or matrix or ())
            for call in trace.calls:
                value, message = scored.get(call.message), trace.message(call.message)
                said = message.action
                view = trace.view(call)
                own = None if said is None else view.from_screen_with_hidden(said)
                if value and (own is not None or unparsed(trace, call)):
                    found.append(
                        ScoredReply(
                            node=call.node,
                            decision=trace.decision(call),
                            reply=own,
                            advantage=value,
                            text=message.content,
                            sampled=call.sampled,
                            logprob=call.logprob,
                        )
                    )
    return found
