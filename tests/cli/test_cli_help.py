"""The help of the commands: options show their defaults, and they are the real ones."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from cli_world import commands

from swarm_ui.experiment.config import Config

NO_DEFAULT = {
    "config", "out", "resume", "help", "say", "without", "add", "cut", "file", "need",
    "base", "adapters", "on", "url",
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


@pytest.mark.parametrize(
    ("name", "options"),
    [("eval", {"agents": "team.agents", "rounds": "team.rounds", "model": "model.name",
               "concurrency": "place.concurrency", "edges": "team.edges"}),
     ("train", {"agents": "team.agents", "rounds": "team.rounds", "iterations": "train.iterations",
                "rollouts": "train.episodes", "method": "train.update.method",
                "seed": "train.seed"})],
)  # fmt: skip
def test_shown_defaults_are_those_of_the_settings(name: str, options: dict[str, str]) -> None:
    config = Config()
    filled = config.model_copy(update={"team": config.team.filled(learning=name == "train")})
    for option, setting in options.items():
        value, text = attrgetter(setting)(filled), described(name)[option].help
        told = (f"{value} (the default", f"(default: {value}", f"in train {value})")
        assert any(each in text for each in told), text


def test_there_are_few_options() -> None:
    assert {*commands()} >= {"eval", "train", "config"}
    assert sum(len(described(name)) for name in commands()) < 120
