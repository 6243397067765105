"""Can a small language model pass on facts that only one of its agents sees?"""

from __future__ import annotations

from benchmarks.study import Study

SWAPPED = "needed edges, values swapped"
STUDY = Study(
    named=(
        ("needed edges", "no talk"), ("learned edges", "broadcast"), ("needed edges", SWAPPED),
    ),
    note="The phone is simulated. One training, one seed of test episodes.",
)  # fmt: skip
