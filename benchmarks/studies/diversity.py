"""Does SmolLM2 gain on new apps if its stage 1 includes invented devices?"""

from __future__ import annotations

from benchmarks.study import Study

SHOWN = ("0 devices", "32 devices", "128 devices", "128 devices, few wordings")
STUDY = Study(
    named=(), seeds=(1,), pooled=False, shown=SHOWN, shown_on=("new parameters", "new apps")
)
