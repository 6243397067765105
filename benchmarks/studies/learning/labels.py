"""Readable names of the rows of the learning benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LABELS = {
    "untrained": "random weights",
    "base_x1": "base agent",
    "base_guard": "base agent with loop guard",
    "base_shuffled": "base agent, one shuffled call",
    "base_clones": "base ×4, vote of clones",
    "base_x4": "base ×4, views + probability vote",
    "base_team": "base ×4, views + probability vote, DAG",
    "more_stage1": "more stage 1 ×4, CPU time of the paper's method",
    "more_stage1_rft": "more stage 1 ×4, CPU time of RFT",
    "full": "the paper's method: DPO, critic, trained with redrawn edges",
    "rft": "RFT (the default), critic, trained with redrawn edges",
    "rft_unguided": "RFT, critic's credit; no guidance, negatives not graded",
    "rft_outcome": "RFT, outcome credit; no guidance, negatives not graded",
    "single_agent": "one agent, RFT, calls and steps of the team",
    "independent_voters": "independent voters, no talk",
    "without_cr": "outcome credit; no guidance, negatives not graded",
    "without_edge_update": "without edge update (one DAG)",
    "without_edge_update_own": "without edge update (one DAG), on that DAG",
    "learned_edges": "learned edges",
    "critic_imitation": "imitation of the critic's choice",
    "without_rehearsal": "without rehearsal",
    "critic_swap": "critic with 20 % errors",
}
ALONE = {
    "untrained": "_greedy", "base_x1": "_greedy", "base_guard": "_greedy",
    "base_shuffled": "_greedy", "base_clones": "_vote", "base_x4": "_vote",
    "independent_voters": "_vote", "single_agent": "_vote", "more_stage1": "_vote",
    "more_stage1_rft": "_vote", "rft_unguided": "_vote", "rft_outcome": "_vote",
}  # fmt: skip
"""Rows without a team on a DAG, with the arm of each."""
Line = dict[str, Any]
"""A row of a record."""


def finder(rows: Sequence[Line], split: str) -> Callable[[str], Line | None]:
    """A function from a name to its row on this split, or to ``None`` if there is no such row."""
    found = {line["name"]: line for line in rows if line["split"] == split}
    return found.get


def main_row(of: Callable[[str], Line | None], name: str) -> Line | None:
    """The row of a policy: of its team on DAGs, else of its vote, else of one agent."""
    return of(name) or of(f"{name}_vote") or of(f"{name}_greedy")
