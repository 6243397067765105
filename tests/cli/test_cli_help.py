"""The help of the commands: it shows the default of every setting, and they are the real ones."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import commands

from swarm_ui.cli.flags import _LEARNING_DEFAULTS
from swarm_ui.experiment.config import Draft
from swarm_ui.experiment.runs import check_training_config, trainer_config

NO_DEFAULT = {
    "config", "settings", "out", "resume", "against", "help", "task", "critics", "plots", "say",
    "without", "add", "cut", "file", "need", "base",
}  # fmt: skip
"""Options for what is nothing if it is not given."""


def described(name: str) -> dict[str, Any]:
    """The options of a command with a value, by name."""
    return {
        found.name: found
        for found in commands()[name].params
        if found.param_type_name == "option"
        and not found.is_flag
        and not getattr(found, "hidden", False)
    }


@pytest.mark.parametrize("name", list(commands()))
def test_every_option_shows_its_default(name: str) -> None:
    silent = [
        option
        for option, found in described(name).items()
        if option not in NO_DEFAULT and "default" not in found.help and found.default in (None, "")
    ]
    assert silent == []


def test_train_shows_its_own_defaults() -> None:
    for name, text in (("agents", "4"), ("rounds", "3"), ("views", "shuffle"),
                       ("temperature", "0.8"), ("method", "rft")):  # fmt: skip
        assert described("train")[name].help.endswith(f"(default: {text})")
    served = "the endpoint's own, or 0 in this process"
    for name, text in (("agents", "1"), ("rounds", "1"), ("views", "same"),
                       ("temperature", served)):  # fmt: skip
        assert described("eval")[name].help.endswith(f"(default: {text})")


def test_defaults_of_learning_are_those_of_its_settings() -> None:
    pytest.importorskip("torch")
    from swarm_ui.optim.stage1 import CorpusConfig, FinetuneConfig

    found: dict[str, Any] = {
        "train": trainer_config(check_training_config(Draft())),
        "synthesize": CorpusConfig(),
        "finetune": FinetuneConfig(),
    }
    for setting, shown in _LEARNING_DEFAULTS.items():
        section, *path = setting.split(".")
        if section in found:
            value = found[section]
            for part in path:
                value = getattr(value, part)
            assert type(value)(shown) == value, setting
