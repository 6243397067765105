"""Metrics of team training, one record for each iteration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from swarm_ui.action import Action, unfit
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.optim.preferences import (
    PreferencePair,
    ScoredReply,
    credit_by_message,
    scored_proposals,
)
from swarm_ui.optim.update import UpdateStats
from swarm_ui.rollout import WAIT
from swarm_ui.stats import wilson_of
from swarm_ui.trace.records import EdgeName, Episode, Trace


class GraphMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of the episodes that were played with one graph."""

    edges: tuple[EdgeName, ...]
    log_prob: float | None
    """Joint log-probability (nats) of order and edges; ``None`` if they were fixed."""
    success: float | None
    """Success rate of the episodes played with the graph; ``None`` if all were masked."""
    right: float | None
    """Mean credit of its decisions; ``None`` if none was scored."""


class EdgeUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What one update of the edges used and changed."""

    used: int
    """Number of drawn graphs with a utility; the others were masked."""
    moved: float
    """Largest change of an edge's probability."""
    entropy: float
    """Expected entropy (nats) of the edges after the update."""


class IterationMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``metrics.jsonl``."""

    kind: str = "iteration"
    iteration: int
    """Number of the iteration, from 0."""
    staleness: int = 0
    """Number of updates by which the acting weights lagged behind the learning weights."""
    shared: bool
    """Whether one adapter was trained for all that share their start."""
    graphs: tuple[GraphMetrics, ...]
    episodes: int
    masked: int
    """Number of episodes masked by faults; all other metrics leave them out."""
    replayed: int = 0
    """Episodes that were played again because a model could not be reached; each counts once."""
    success: float | None
    """Success rate of the rollouts. Replies are sampled, and guided if guidance is on, so
    this is not comparable with a test."""
    guided: float | None
    """Share of steps at which another action was executed than the vote's, or than to wait where
    the vote had no action that can be executed."""
    credit: float | None
    """Mean credit of all scored messages; ``None`` if none was scored."""
    credit_source: str
    unscored: float | None
    """Share of the agents' messages without credit."""
    critic_weights: tuple[float, ...] | None = None
    """The learned weight of the critic by round, with
    :class:`~swarm_ui.optim.credit.trust.Trust`; ``None``: it is not learned."""
    pairs: dict[str, int]
    """Number of pairs, or of scored replies, by node."""
    sources: dict[str, int]
    """Number of pairs by the source of their two sides."""
    updates: tuple[UpdateStats, ...]
    nothing_learned: str = ""
    """Why no adapter was trained, and what to change; empty: at least one was trained."""
    edge_update: EdgeUpdate | None = None
    edge_probabilities: dict[str, float] | None = None
    """Edge probabilities after the iteration, by ``"sender>listener"``; only for learned edges."""
    rollout_seconds: float
    update_seconds: float
    cpu_seconds: float
    """CPU time of this process in the whole iteration."""
    peak_memory_mb: float | None = None
    """Peak resident memory of this process until the end of the iteration, in 2**20 bytes.
    ``None``: unknown on this system."""


def scalars(metrics: IterationMetrics) -> dict[str, float]:
    """The metrics of an iteration by name, as loggers receive them. A metric that was not measured
    is absent. ``rollout/success_low`` and ``rollout/success_high`` are the 95 % score interval
    (Wilson) of the success rate. Names hold letters, digits and ``_-./`` or spaces, which every
    logger accepts.
    """
    edges, played = metrics.edge_update, metrics.episodes - metrics.masked
    interval = None
    if metrics.success is not None:
        interval = wilson_of(round(metrics.success * played), played)
    groups: dict[str, Mapping[str, float | None]] = {
        "rollout": {
            "success": metrics.success,
            "success_low": interval.low if interval else None,
            "success_high": interval.high if interval else None,
            "episodes": metrics.episodes, "guided": metrics.guided, "masked": metrics.masked,
            "staleness": metrics.staleness or None,
        },
        "credit": {"mean": metrics.credit, "unscored": metrics.unscored},
        "pairs": {**metrics.pairs, "total": sum(metrics.pairs.values())},
        "loss": {update.adapter: update.loss for update in metrics.updates},
        "edges": {"entropy": edges.entropy, "moved": edges.moved} if edges else {},
        "edge": metrics.edge_probabilities or {},
        "seconds": {
            "rollout": metrics.rollout_seconds, "update": metrics.update_seconds,
            "cpu": metrics.cpu_seconds,
        },
        "memory": {"peak_mb": metrics.peak_memory_mb},
    }  # fmt: skip
    return {
        f"{group}/{_NOT_IN_NAMES.sub('_', name.replace('>', ' to '))}": float(value)
        for group, values in groups.items()
        for name, value in values.items()
        if value is not None
    }


_NOT_IN_NAMES = re.compile(r"[^\w\-./ ]", re.ASCII)


class EpisodeFigures(TypedDict):
    """The fields of :class:`IterationMetrics` that are computed from the episodes alone."""

    episodes: int
    masked: int
    success: float | None
    guided: float | None
    credit: float | None
    unscored: float | None


def episode_figures(episodes: Sequence[Episode]) -> EpisodeFigures:
    """Compute the metrics of the episodes. Masked episodes are counted, and are in no other
    metric."""
    kept = [e for e in episodes if e.success is not None]
    steps = [record for episode in kept for record in episode.steps]
    given = [credit_by_message(s.trace, s.credit or ()) for s in steps]
    scores = [
        scored.get(message.id)
        for step, scored in zip(steps, given, strict=True)
        for message in step.trace.messages
        if message.sender in step.trace.agents
    ]
    guided = [s.executed not in (None, _unguided(s.trace)) for s in steps]
    return EpisodeFigures(
        episodes=len(episodes),
        masked=len(episodes) - len(kept),
        success=success_rate(episodes),
        guided=mean(guided),
        credit=mean([score for score in scores if score is not None]),
        unscored=mean([score is None for score in scores]),
    )


def _unguided(trace: Trace) -> Action:
    """The action that is executed if nobody replaces it."""
    return WAIT if trace.action is None or unfit(trace.action) else trace.action


def success_rate(episodes: Sequence[Episode]) -> float | None:
    """Success rate of the episodes that were not masked; ``None`` if all were masked."""
    return mean([float(e.success) for e in episodes if e.success is not None])


def decision_credit(episodes: Sequence[Episode]) -> float | None:
    """Mean credit of the decisions (not the messages) of unmasked episodes, scored ones only."""
    values = []
    for episode in episodes:
        for record in episode.steps if episode.success is not None else ():
            voted = record.trace.action
            for graded in scored_proposals(record.trace, record.credit or ()):
                if voted is not None and graded.action.key == voted.key:
                    values.append(graded.credit)
    return mean(values)


def pair_figures(
    pairs: Sequence[PreferencePair] | Sequence[ScoredReply],
) -> tuple[dict[str, int], dict[str, int]]:
    """Number of examples by node and by source, sorted by name."""
    nodes, sources = Counter(p.node for p in pairs), Counter(p.source for p in pairs)
    return dict(sorted(nodes.items())), dict(sorted(sources.items()))


def peak_memory_mb() -> float | None:
    """Peak resident memory of this process in 2**20 bytes; ``None`` if the system does not report
    it."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage may give the peak of the process before exec
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        return None if found is None else int(found.group(1)) / 2**10
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS: bytes


def mean(values: Sequence[float]) -> float | None:
    """The mean; ``None`` if there are no values."""
    return sum(values) / len(values) if values else None


def why_nothing_was_learned(
    episodes: Sequence[Episode], config: TeamConfig, *, source: str, examples: int, steps: int
) -> str:
    """Why no adapter was trained, and what to change.

    Args:
        episodes: the episodes of the iteration, with their credit.
        config: the settings of the training.
        source: the name of the source of credit.
        examples: the number of pairs or scored replies.
        steps: the optimiser steps that the settings give an adapter.
    """
    played = [episode for episode in episodes if episode.fault is None]
    records = [record for episode in played for record in episode.steps]
    scores = [v for r in records for v in credit_by_message(r.trace, r.credit or ()).values()]
    pairs, method = config.pairs, config.update.method
    if not played:
        return (
            f"the environment broke in all {len(episodes)} episodes, which are masked; their "
            "faults say why"
        )
    if not scores:
        return f"'{source}' scored no message; use another critic, or none (outcome as credit)"
    if examples and not steps:
        return "the settings give an adapter 0 optimiser steps; raise update.steps or shared_steps"
    if examples:
        return f"none of the {examples} examples can be used by method '{method}'"
    if method == "pg":
        return (
            "all replies to a screen got the same credit, so none is better than the others; use "
            "a higher temperature, more episodes, or a critic"
        )
    right = any(score > pairs.good_above for score in scores)
    wrong = any(score < pairs.bad_below for score in scores)
    if not right and not wrong:
        return (
            f"'{source}' found no reply better or worse than others; use another critic, or let it "
            "compare several attempts at each task"
        )
    if not right:
        found = f"'{source}' found no reply right"
        if source == Outcome.name:
            found = "no episode was solved, and the outcome is the credit"
        return f"{found}; use more episodes, easier tasks, a critic, or a teacher"
    if not wrong:
        return (
            f"no reply was wrong, and pairs.easy_share = {pairs.easy_share:g} left out the right "
            "ones; raise it, or use harder tasks or more episodes"
        )
    return (
        "no reply was paired: the right ones are on other screens than the wrong ones, or were "
        "left out (pairs.easy_share, pairs.abstentions); use more episodes"
    )
