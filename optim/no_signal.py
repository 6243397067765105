"""The reason why an iteration of training changed no adapter."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit
from swarm_ui.optim.preferences.grading import credit_by_message
from swarm_ui.trace.records import Episode


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
        if source == OutcomeCredit.name:
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
