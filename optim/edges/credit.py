"""Converts the credit of messages to credit of the edges that carried them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from statistics import fmean

from swarm_ui.errors import ConfigError
from swarm_ui.optim.preferences import credit_by_message
from swarm_ui.trace.records import EdgeName, Episode, Trace

_BASELINE = 0.5
"""What is subtracted from a credit, which is neither right nor wrong there."""


def edge_credit(
    trace: Trace, credit: Sequence[Sequence[float | None]], *, discount: float = 0.5
) -> dict[EdgeName, float]:
    """Credit of each edge of a decision, propagated backwards through the messages.

    The advantage of a message is its credit minus one half. Its return is its own advantage plus
    ``discount`` times the mean return of the messages that received it. Credit of a late message
    therefore reaches all messages before it, discounted with every hop. An edge gets the advantage
    of the message that it carried plus ``discount`` times the return of the receiver's message.
    Edges that carried no message have no entry.

    Args:
        trace: one decision.
        credit: ``[rounds, agents]`` in the sequence of ``trace.agents``; ``None``: unscored; such
            a message has no advantage of its own.
        discount: a number in [0, 1); with 0 an edge gets only the advantage of the message itself.

    Returns:
        the mean over the messages that each edge carried, by (sender, listener).
    """
    if not 0.0 <= discount < 1.0:
        raise ConfigError(f"edge credit: discount must be in [0, 1), got {discount}")
    own = {id: v - _BASELINE for id, v in credit_by_message(trace, credit).items()}
    sender = {message.id: message.sender for message in trace.messages}
    failed = {message.id for message in trace.messages if message.error is not None}
    heard_by: dict[str, list[str]] = {}
    for call in trace.calls:
        for id in call.heard:
            heard_by.setdefault(id, []).append(call.id)

    @cache
    def returns(id: str) -> float | None:
        """``None`` where neither the message nor a later one was scored."""
        later = [v for reply in heard_by.get(id, ()) if (v := returns(reply)) is not None]
        return own.get(id, 0.0) + discount * fmean(later) if later and discount else own.get(id)

    carried: dict[EdgeName, list[float]] = {}
    edges = set(trace.edges)
    for call in trace.calls:
        onward = returns(call.id) if discount else None
        for id in call.heard:
            edge = (sender.get(id, ""), call.node)
            if edge in edges and id not in failed and (id in own or onward is not None):
                carried.setdefault(edge, []).append(own.get(id, 0.0) + discount * (onward or 0.0))
    return {edge: fmean(values) for edge, values in sorted(carried.items())}


def episode_edge_credit(
    episodes: Iterable[Episode], *, edges: Iterable[EdgeName] | None = None, discount: float = 0.5
) -> dict[EdgeName, float]:
    """Mean credit of each edge of one sampled graph, over the decisions of its episodes.

    This is one element of ``credit`` in :func:`~swarm_ui.optim.edges.optim.edge_loss`. Steps
    without credit, and masked episodes, are left out. ``edges`` are those to keep, such as those
    of the sample; default: all. For ``discount`` see :func:`edge_credit`.
    """
    gathered: dict[EdgeName, list[float]] = {}
    for episode in episodes:
        for step in episode.steps if episode.success is not None else ():
            if step.credit is not None:
                for edge, value in edge_credit(step.trace, step.credit, discount=discount).items():
                    gathered.setdefault(edge, []).append(value)
    kept = set(gathered if edges is None else edges)
    return {edge: fmean(values) for edge, values in sorted(gathered.items()) if edge in kept}
