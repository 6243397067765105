"""From credit of messages to credit of the edges that carried them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swarm_ui.deprecation import renamed_keywords
from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import EdgeName, Episode, Trace

Cells = Sequence[Sequence[float | None]]


@renamed_keywords(back="discount")
def edge_credit(
    trace: Trace, credit: Cells, *, baseline: float | None = 0.5, discount: float = 0.5
) -> dict[EdgeName, float]:
    """What each edge of a decision earned: credit that travels back along it.

    An edge earns the advantage of the message it carried, plus a share of what its listener's
    message earned. A message earns its own advantage plus ``discount`` times the mean of what the
    messages that heard it earned. So credit of a late message reaches, weaker with every hop, all
    messages that led to it. Edges that carried nothing, and own earlier messages, are not in it.

    Args:
        trace: one decision.
        credit: ``[rounds, agents]`` as in ``trace.agents``; ``None`` is unscored: such a message
            has no advantage of its own.
        baseline: what a credit is compared with; ``None``: the mean of this decision's credits.
        discount: in [0, 1): share that travels on with each hop; 0: only the message itself.

    Returns:
        the mean over the messages each edge carried, by (sender, listener).

    Raises:
        ConfigError: the credit has another shape than the trace.
    """
    if not 0.0 <= discount < 1.0:
        raise ConfigError(f"edge credit: discount must be in [0, 1), got {discount}")
    own = _advantages(trace, credit, baseline)
    heard_by: dict[str, list[str]] = {}
    sender = {message.id: message.sender for message in trace.messages}
    failed = {message.id for message in trace.messages if message.error is not None}
    for call in trace.calls:
        for id in call.heard:
            heard_by.setdefault(id, []).append(call.message)
    earned: dict[str, float | None] = {}

    def value(id: str) -> float | None:
        """Own advantage and that of the listeners; ``None`` where nothing is known."""
        later = [v for listener in heard_by.get(id, ()) if (v := earned[listener]) is not None]
        mine = own.get(id)
        if not later or not discount:
            return mine
        return (mine or 0.0) + discount * sum(later) / len(later)

    # Listeners come after whom they hear, so the other way round all listeners are known.
    for id in reversed(_spoken(trace)):
        earned[id] = value(id)
    carried: dict[EdgeName, list[float]] = {}
    edges = set(trace.edges)
    for call in trace.calls:
        for id in call.heard:
            edge = (sender.get(id, ""), call.node)
            mine, onward = own.get(id), earned.get(call.message) if discount else None
            if edge not in edges or id in failed or (mine is None and onward is None):
                continue
            carried.setdefault(edge, []).append((mine or 0.0) + discount * (onward or 0.0))
    return {edge: sum(values) / len(values) for edge, values in sorted(carried.items())}


def mean_edge_credit(decisions: Sequence[Mapping[EdgeName, float]]) -> dict[EdgeName, float]:
    """The mean over the decisions in which each edge earned something."""
    gathered: dict[EdgeName, list[float]] = {}
    for decision in decisions:
        for edge, value in decision.items():
            gathered.setdefault(edge, []).append(value)
    return {edge: sum(values) / len(values) for edge, values in sorted(gathered.items())}


@renamed_keywords(back="discount")
def episode_edge_credit(
    episodes: Iterable[Episode],
    *,
    edges: Iterable[EdgeName] | None = None,
    baseline: float | None = 0.5,
    discount: float = 0.5,
) -> dict[EdgeName, float]:
    """What each edge of one drawn graph earned in the episodes that were played with it.

    One element of ``credit`` in :meth:`~swarm_ui.optim.edges.optimizer.EdgeOptimizer.step`.

    Args:
        episodes: with credit; steps without any, and masked episodes (``success`` is ``None``),
            are left out.
        edges: the ones to keep, such as those of the sample the graph was made from; default: all.
        baseline, discount: see :func:`edge_credit`.

    Returns:
        the mean over the decisions in which each edge earned something.
    """
    decisions = [
        edge_credit(step.trace, step.credit, baseline=baseline, discount=discount)
        for episode in episodes
        if episode.success is not None
        for step in episode.steps
        if step.credit is not None
    ]
    means = mean_edge_credit(decisions)
    kept = set(means if edges is None else edges)
    return {edge: value for edge, value in means.items() if edge in kept}


def _advantages(trace: Trace, credit: Cells, baseline: float | None) -> dict[str, float]:
    if len(credit) != trace.rounds or any(len(row) != len(trace.agents) for row in credit):
        shape = [len(credit), *{len(row) for row in credit}]
        raise ConfigError(
            f"edge credit: run {trace.run} has {trace.rounds} rounds of {len(trace.agents)} "
            f"agents, the credit is of shape {shape}"
        )
    ids = {(m.round, m.sender): m.id for m in trace.messages}
    values = {
        ids[r, agent]: v
        for r, row in enumerate(credit)
        for agent, v in zip(trace.agents, row, strict=True)
        if v is not None and (r, agent) in ids
    }
    if baseline is None:
        baseline = sum(values.values()) / len(values) if values else 0.0
    return {id: v - baseline for id, v in values.items()}


def _spoken(trace: Trace) -> list[str]:
    """Ids of all messages so that each comes after those it heard."""
    heard = {call.message: call.heard for call in trace.calls}
    done: dict[str, None] = {}
    for message in trace.messages:
        stack = [message.id]
        while stack:
            id = stack[-1]
            waiting = [h for h in heard.get(id, ()) if h not in done]
            if waiting:
                stack += waiting
            else:
                done.setdefault(stack.pop())
    return list(done)
