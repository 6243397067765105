"""What does a team gain from stage 2, and which of its parts are needed?

A team of four is trained from the base agent on the phone (5 iterations of 112 episodes). It is
tested as a vote without edges (4 calls for a decision), as a team of 3 rounds on DAGs that it did
not see in training (12 calls), and as one of its agents alone.
"""

from __future__ import annotations

from benchmarks.study import Study

STARTS = ("four untrained agents", "DPO, no rehearsal", "DPO, critic with 20 % errors")
"""Teams that were tested on three DAGs; others were tested on one."""
STUDY = Study(
    named=(
        ("RFT; vote", "more stage 1, time of RFT; vote"),
        ("RFT, critic, no guidance; vote", "RFT, outcome, no guidance; vote"),
        ("RFT; vote", "one agent with the calls of the team; vote"),
    ),
    explored=(
        ("RFT; vote", "four untrained agents"),
        ("RFT; on DAGs", "four untrained agents"),
        ("RFT; on DAGs", "RFT; vote"),
        ("DPO; vote", "four untrained agents"),
        ("DPO; on DAGs", "four untrained agents"),
        ("DPO; on DAGs", "DPO; vote"),
        ("DPO; on DAGs", "DPO, no edges; vote"),
        ("DPO; on DAGs", "DPO, outcome, no guidance; on DAGs"),
        ("DPO; on DAGs", "DPO, critic with 20 % errors; on DAGs"),
        ("DPO; on DAGs", "DPO, one DAG; on DAGs"),
        ("DPO; on DAGs", "DPO, learned edges; on DAGs"),
        ("DPO; on DAGs", "DPO, no rehearsal; on DAGs"),
        ("DPO; on DAGs", "imitation of the solver; on DAGs"),
        ("RFT; vote", "imitation of the solver; vote"),
        ("more stage 1, time of RFT; vote", "four untrained agents"),
        ("more stage 1, time of DPO; vote", "four untrained agents"),
        ("four untrained agents", "base agent"),
        ("four untrained agents; on DAGs", "four untrained agents"),
    ),
    means={f"{name}; on DAGs": [f"{name}; DAG {k}" for k in (1, 2, 3)] for name in STARTS},
    shown=(
        "base agent", "four untrained agents", "more stage 1, time of RFT; vote", "RFT; vote",
        "DPO; on DAGs",
    ),
)  # fmt: skip
