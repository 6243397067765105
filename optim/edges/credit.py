"""Converts the credit of messages to credit of the edges that carried them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import topological
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
    returns = _returns(trace, own, discount)
    carried: dict[EdgeName, list[float]] = {}
    edges = set(trace.edges)
    for call in trace.calls:
        for id in call.heard:
            edge = (sender.get(id, ""), call.node)
            mine, onward = own.get(id), returns.get(call.id) if discount else None
            if edge not in edges or id in failed or (mine is None and onward is None):
                continue
            carried.setdefault(edge, []).append((mine or 0.0) + discount * (onward or 0.0))
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
            found = {} if step.credit is None else edge_credit(
                step.trace, step.credit, discount=discount
            )  # fmt: skip
            for edge, value in found.items():
                gathered.setdefault(edge, []).append(value)
    kept = set(gathered if edges is None else edges)
    return {edge: fmean(values) for edge, values in sorted(gathered.items()) if edge in kept}


def _returns(trace: Trace, own: dict[str, float], discount: float) -> dict[str, float | None]:
    """Return of each message, by id; ``None`` where neither it nor a later one was scored."""
    calls = {call.id: call.heard for call in trace.calls}
    known = {message.id for message in trace.messages}
    heard = {m.id: [h for h in calls.get(m.id, ()) if h in known] for m in trace.messages}
    listeners: dict[str, list[str]] = {}
    for call in trace.calls:
        for id in call.heard:
            listeners.setdefault(id, []).append(call.id)
    returns: dict[str, float | None] = {}
    # Every message precedes those that depend on it, so a reverse pass knows their returns.
    for id in reversed(topological(heard)):
        later = [v for m in listeners.get(id, ()) if (v := returns.get(m)) is not None]
        returns[id] = own.get(id)
        if later and discount:
            returns[id] = own.get(id, 0.0) + discount * fmean(later)
    return returns
