"""The study of invented devices again, with a teacher where no agent finds a right action."""

from __future__ import annotations

from benchmarks.studies.invented_training import BASE, GENERAL, study

STUDY = study(
    "stage 2 with a teacher, 512 invented devices",
    BASE,
    (
        "more stage 1, 512 invented devices",
        "stage 2 without a teacher, 512 invented devices",
    ),
    (
        "stage 2 with a teacher, 0 invented devices",
        "stage 2 with a teacher, 32 invented devices",
        "stage 2 with a teacher, 128 invented devices",
        "more stage 1 at rate 4e-3, 512 invented devices",
    ),
    shown=(
        BASE, "stage 2 without a teacher, 512 invented devices",
        "stage 2 with a teacher, 512 invented devices", "more stage 1, 512 invented devices",
        GENERAL,
    ),
)  # fmt: skip
