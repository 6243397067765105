"""What does a team gain and forget if its training continues on web pages and recorded tasks?"""

from __future__ import annotations

from benchmarks.study import Study

PHONE, WEB, TRACES = "phone", "phone → web", "phone → web → traces"
STUDY = Study(
    named=(),
    explored=(
        (PHONE, "base agent"), (WEB, PHONE), ("phone → synthetic", PHONE),
        (WEB, "phone → synthetic"), (TRACES, WEB), (f"{WEB}, rehearsal", PHONE),
        (f"{WEB}, rehearsal", WEB), (f"{TRACES}, rehearsal", TRACES),
    ),
    shown=("base agent", PHONE, WEB, TRACES, f"{TRACES}, rehearsal"),
    shown_on=(
        "pages trained on, new seeds", "far held-out pages", "phone: new parameters",
        "traces: other tasks",
    ),
    note="The phone is simulated. The recorded tasks are generated, in the format of Mind2Web: "
    "their score is the share of right steps, and says nothing about Mind2Web.",
)  # fmt: skip
