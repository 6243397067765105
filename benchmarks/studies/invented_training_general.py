"""The study of invented devices again, from the general agent."""

from __future__ import annotations

from benchmarks.studies.invented_training import GENERAL, arms, study
from swarm_ui.environments.phone.invented import BLIND, BLIND_DEVICES
from swarm_ui.nodes import GENERAL_AGENT

STUDY = study(
    arms("invented_training_general", GENERAL, GENERAL_AGENT, BLIND + BLIND_DEVICES),
    "stage 2, 32 invented devices",
    GENERAL,
    ("more stage 1, 32 invented devices", "stage 2, 0 invented devices"),
    (),
)
