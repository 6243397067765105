"""Experiments: what the command line does, from Python.

config = load(overrides=["env.name=phone", "team.agents=4"])
run = Run.create("runs/team", config)
train(run)
results = evaluate(run, split="parameters")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.experiment.config import Config
    from swarm_ui.experiment.learning import train
    from swarm_ui.experiment.loading import load
    from swarm_ui.experiment.playing import compare, evaluate
    from swarm_ui.experiment.run import Run

__all__ = ["Config", "Run", "compare", "evaluate", "load", "train"]
_PLACES = {
    "Config": "swarm_ui.experiment.config",
    "Run": "swarm_ui.experiment.run",
    "compare": "swarm_ui.experiment.playing",
    "evaluate": "swarm_ui.experiment.playing",
    "load": "swarm_ui.experiment.loading",
    "train": "swarm_ui.experiment.learning",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
