"""Do messages and learned edges help scripted agents of which each sees one app?"""

from __future__ import annotations

from benchmarks.study import Study

STUDY = Study(
    named=(
        ("broadcast", "no talk"), ("learned edges", "broadcast"),
        ("learned edges", "3 random senders"),
    ),
    named_on=("known templates", "new templates"),
    seeds=(0, 1, 2, 3, 4),
    note="Scripted agents on a simulated phone: no evidence about language models.",
)  # fmt: skip
