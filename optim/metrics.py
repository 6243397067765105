"""Metrics of team training: a flat dictionary for each iteration, and the reason for no signal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from swarm_ui.optim.config import POLICY_GRADIENT, TeamConfig
from swarm_ui.optim.credit.critic import Outcome
from swarm_ui.optim.preferences import PreferencePair, credit_by_message, scored_proposals
from swarm_ui.optim.update import UpdateStats
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode

Metrics = dict[str, Any]
"""One line of ``metrics.jsonl``: numbers, texts and lists by name; ``None``: not measured.

- ``iteration``, from 0; ``shared``: whether one adapter was trained for several agents.
- ``episodes``; ``masked``: those with a fault, which all other metrics leave out.
- ``success`` of the rollouts, which are sampled and perhaps guided, so it is not comparable with a
  test; ``guided``: share of steps at which another action was executed than the vote's.
- ``credit``: mean of all scored messages; ``unscored``: share of messages without credit;
  ``credit_source``; ``critic_weights``: a learned weight of the critic by round.
- ``pairs``: pairs or scored replies; ``pairs/NODE``; ``sources/SOURCE``.
- ``steps``; ``steps/ADAPTER``, ``loss/ADAPTER``, ``seconds/ADAPTER`` of the updates.
- ``nothing_learned``: why no adapter was trained, and what to change; empty: one was.
- ``graphs``: the edges of each graph that was played; for learned edges ``edge/SENDER>LISTENER``,
  the probabilities after the iteration, and ``edges_moved``: the largest change of one.
- ``rollout_seconds``, ``update_seconds``, ``cpu_seconds`` of this process.
"""


def episode_metrics(episodes: Sequence[Episode]) -> Metrics:
    """The metrics of the episodes alone."""
    kept = [e for e in episodes if e.success is not None]
    steps = [record for episode in kept for record in episode.steps]
    scores = [value for step in steps for value in credit_by_message(step).values()]
    said = sum(m.sender in step.trace.agents for step in steps for m in step.trace.messages)
    return {
        "episodes": len(episodes),
        "masked": len(episodes) - len(kept),
        "success": success_rate(episodes),
        "guided": mean([s.executed not in (None, s.trace.action or WAIT) for s in steps]),
        "credit": mean(scores),
        "unscored": 1.0 - len(scores) / said if said else None,
    }


def update_metrics(examples: Sequence[PreferencePair], updates: Sequence[UpdateStats]) -> Metrics:
    """The metrics of the examples and of the updates of adapters."""
    nodes, sources = Counter(e.node for e in examples), Counter(e.source for e in examples)
    found: Metrics = {"pairs": len(examples)}
    found |= {f"pairs/{name}": count for name, count in sorted(nodes.items())}
    found |= {f"sources/{name}": count for name, count in sorted(sources.items())}
    found["steps"] = sum(update.steps for update in updates)
    for update in updates:
        found |= {f"{k}/{update.adapter}": getattr(update, k) for k in ("steps", "loss", "seconds")}
    return found


def numbers(metrics: Metrics) -> dict[str, float]:
    """The numbers of an iteration for a ``log``, by names of letters, digits, ``_-./``, spaces."""
    return {
        re.sub(r"[^\w\-./ ]", "_", name.replace(">", " to "), flags=re.ASCII): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def success_rate(episodes: Sequence[Episode]) -> float | None:
    """Success rate of the episodes that were not masked; ``None`` if all were masked."""
    return mean([float(e.success) for e in episodes if e.success is not None])


def decision_credit(episodes: Sequence[Episode]) -> float | None:
    """Mean credit of the decisions (not the messages) of unmasked episodes, scored ones only."""
    return mean([
        graded.credit
        for episode in episodes
        for record in (episode.steps if episode.success is not None else ())
        for graded in scored_proposals(record)
        if record.trace.action is not None and graded.action.key == record.trace.action.key
    ])  # fmt: skip


def why_nothing_was_learned(
    episodes: Sequence[Episode], config: TeamConfig, source: str, examples: int
) -> str:
    """Why no adapter was trained, and what to change: from the episodes with their credit, the name
    of its source, and the number of pairs or scored replies."""
    played = [episode for episode in episodes if episode.fault is None]
    scores = [v for e in played for r in e.steps for v in credit_by_message(r).values()]
    right, wrong = any(score > 0.5 for score in scores), any(score < 0.5 for score in scores)
    solved = f"'{source}' found no reply right"
    if source == Outcome.name:
        solved = "no episode was solved, and the outcome is the credit"
    reasons = (
        (not played, f"the environment broke in all {len(episodes)} episodes, which are masked; "
                     "their faults say why"),
        (not scores, f"'{source}' scored no message; use another critic, or none (outcome as "
                     "credit)"),
        (bool(examples and not config.update.steps), "the settings give an adapter 0 optimiser "
                                                     "steps; raise update.steps"),
        (examples > 0, f"none of the {examples} examples can be used by method "
                       f"'{config.update.method}'"),
        (config.update.method in POLICY_GRADIENT, "all replies to a screen got the same credit, so "
         "none is better than the others; use a higher temperature, more episodes, or a critic"),
        (not right and not wrong, f"'{source}' found no reply better or worse than others; use "
         "another critic, or let it compare several attempts at each task"),
        (not right, f"{solved}; use more episodes, easier tasks, a critic, or a teacher"),
        (not wrong, f"no reply was wrong, and easy_share = {config.easy_share:g} left out the "
                    "right ones; raise it, or use harder tasks or more episodes"),
        (True, "no reply was paired: the right ones are on other screens than the wrong ones, or "
               "were left out (easy_share); use more episodes"),
    )  # fmt: skip
    return next(reason for applies, reason in reasons if applies)


def mean(values: Sequence[float]) -> float | None:
    """The mean; ``None`` if there are no values."""
    return sum(values) / len(values) if values else None
