"""What does stage 2 add to SmolLM2, a pretrained language model of 135 M parameters?"""

from __future__ import annotations

from benchmarks.study import Study

STUDY = Study(
    named=(),
    pooled=False,
    shown=(
        "base agent (0.19 M), one agent", "stage 1, vote of 4",
        "stage 2: rft, scripted critic, vote of 4", "more stage 1, equal steps, vote of 4",
        "stage 2: rft, learned critic, vote of 4",
    ),
    shown_on=("new parameters", "new apps", "reference pages"),
    note="The phone is simulated; the web pages are real. Intervals cover episodes, not the "
    "variation between seeds.",
)  # fmt: skip
