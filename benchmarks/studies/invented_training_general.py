"""The study of invented devices again, from the general agent."""

from __future__ import annotations

from benchmarks.studies.invented_training import GENERAL, study

STUDY = study(
    "stage 2, 32 invented devices",
    GENERAL,
    ("more stage 1, 32 invented devices", "stage 2, 0 invented devices"),
    (),
)
