"""Do messages make agents that see the whole screen more accurate?"""

from __future__ import annotations

from benchmarks.study import Study

STUDY = Study(
    named=(("on the DAG", "no edges"),),
    named_on=("an agent is right", "all say the same", "the vote is right"),
    note="Shares of decisions, graded by a scripted critic on a simulated phone. An episode in the "
    "tables is a decision; their number differs between the seeds.",
)
