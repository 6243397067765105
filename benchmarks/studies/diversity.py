"""Does SmolLM2 gain on new apps if its stage 1 includes invented devices?"""

from __future__ import annotations

from benchmarks.study import Study

STUDY = Study(
    named=(),
    pooled=False,
    shown=("0 devices", "32 devices", "128 devices", "128 devices, few wordings"),
    shown_on=("new parameters", "new apps"),
    note="The phone is simulated. The adapters change layers 8 to 29.",
)
