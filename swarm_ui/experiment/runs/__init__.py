"""Runs of ``run``, ``eval`` and ``train``: checked, begun, played or trained, and resumed."""

from swarm_ui.experiment.runs.beginning import begin, check_code, discard_if_unused
from swarm_ui.experiment.runs.config_checks import (
    TRAINING_TEAM,
    check_config,
    check_training_config,
)
from swarm_ui.experiment.runs.playing import evaluate, trials_of
from swarm_ui.experiment.runs.resuming import configuration_of, resume
from swarm_ui.experiment.runs.run_settings import Run, first_split, open_environment
from swarm_ui.experiment.runs.team_training import evaluation_settings, train_run, trainer_config

__all__ = [
    "TRAINING_TEAM",
    "Run",
    "begin",
    "check_code",
    "check_config",
    "check_training_config",
    "configuration_of",
    "discard_if_unused",
    "evaluate",
    "evaluation_settings",
    "first_split",
    "open_environment",
    "resume",
    "train_run",
    "trainer_config",
    "trials_of",
]
