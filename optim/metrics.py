"""Metrics of team training: a flat dictionary for each iteration, and the reason for no signal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from swarm_ui.action import Action
from swarm_ui.optim.config import POLICY_GRADIENT, TeamConfig
from swarm_ui.optim.credit.critic import Outcome
from swarm_ui.optim.preferences import (
    PreferencePair,
    credit_by_message,
    scored_proposals,
)
from swarm_ui.optim.update import UpdateStats
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode, Trace

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
    given = [credit_by_message(s.trace, s.credit or ()) for s in steps]
    scores = [
        scored.get(message.id)
        for step, scored in zip(steps, given, strict=True)
        for message in step.trace.messages
        if message.sender in step.trace.agents
    ]
    return {
        "episodes": len(episodes),
        "masked": len(episodes) - len(kept),
        "success": success_rate(episodes),
        "guided": mean([s.executed not in (None, _voted(s.trace)) for s in steps]),
        "credit": mean([score for score in scores if score is not None]),
        "unscored": mean([score is None for score in scores]),
    }


def update_metrics(examples: Sequence[PreferencePair], updates: Sequence[UpdateStats]) -> Metrics:
    """The metrics of the examples and of the updates of adapters."""
    nodes, sources = Counter(e.node for e in examples), Counter(e.source for e in examples)
    found: Metrics = {"pairs": len(examples)}
    found |= {f"pairs/{name}": count for name, count in sorted(nodes.items())}
    found |= {f"sources/{name}": count for name, count in sorted(sources.items())}
    found["steps"] = sum(update.steps for update in updates)
    for update in updates:
        found[f"steps/{update.adapter}"] = update.steps
        found[f"loss/{update.adapter}"] = update.loss
        found[f"seconds/{update.adapter}"] = update.seconds
    return found


def numbers(metrics: Metrics) -> dict[str, float]:
    """The numbers of an iteration by name, as a ``log`` receives them: letters, digits and
    ``_-./`` or spaces."""
    return {
        _NOT_IN_NAMES.sub("_", name.replace(">", " to ")): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


_NOT_IN_NAMES = re.compile(r"[^\w\-./ ]", re.ASCII)


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


def why_nothing_was_learned(
    episodes: Sequence[Episode], config: TeamConfig, source: str, examples: int
) -> str:
    """Why no adapter was trained, and what to change: from the episodes with their credit, the name
    of its source, and the number of pairs or scored replies."""
    played = [episode for episode in episodes if episode.fault is None]
    records = [record for episode in played for record in episode.steps]
    scores = [v for r in records for v in credit_by_message(r.trace, r.credit or ()).values()]
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


def _voted(trace: Trace) -> Action:
    return trace.action or WAIT
