"""Environments for agents. All keep the contract of :mod:`swarm_ui.environment`.

Each environment is imported when it is first used, since some need packages of their own.
"""

if __name__ == "environments":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.environments, not environments")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.environments import phone as phone
    from swarm_ui.environments.androidworld.environment import (
        AndroidWorldEnvironment,
        AndroidWorldProcess,
    )
    from swarm_ui.environments.base import (
        TEST_SEEDS,
        TRAIN_SEEDS,
        VALIDATION_SEEDS,
        Done,
        Episodic,
        Stateful,
    )
    from swarm_ui.environments.check import check_environment, contract_report
    from swarm_ui.environments.coordination import CoordinationEnvironment
    from swarm_ui.environments.gym import GymView, TeamView, from_gymnasium
    from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment
    from swarm_ui.environments.phone import PhoneEnvironment
    from swarm_ui.environments.phone.invented import InventedPhone
    from swarm_ui.environments.phone.split import SplitPhone
    from swarm_ui.environments.recorded.autowebbench import AutoWebBench
    from swarm_ui.environments.recorded.mind2web import Mind2Web
    from swarm_ui.environments.subprocess import ProcessEnvironment
    from swarm_ui.environments.web import (
        AllowedHosts,
        Visit,
        WebBrowser,
        WebEnvironment,
        WebTask,
        find_browser,
    )
    from swarm_ui.environments.wrappers import (
        DELETION,
        PAYMENT,
        SENDING,
        ActionFilter,
        Confirm,
        Rule,
        Wrapper,
    )

_PLACES = {
    "base": (
        "TEST_SEEDS", "TRAIN_SEEDS", "VALIDATION_SEEDS", "Done", "Episodic", "Stateful",
    ),
    "phone": ("PhoneEnvironment",),
    "phone.invented": ("InventedPhone",),
    "phone.split": ("SplitPhone",),
    "miniwob": ("MiniWobBrowser", "MiniWobEnvironment"),
    "web": (
        "AllowedHosts", "Visit", "WebBrowser", "WebEnvironment", "WebTask", "find_browser",
    ),
    "androidworld.environment": ("AndroidWorldEnvironment", "AndroidWorldProcess"),
    "recorded.mind2web": ("Mind2Web",),
    "recorded.autowebbench": ("AutoWebBench",),
    "coordination": ("CoordinationEnvironment",),
    "wrappers": (
        "DELETION", "PAYMENT", "SENDING", "ActionFilter", "Confirm", "Rule",
        "Wrapper",
    ),
    "check": ("check_environment", "contract_report"),
    "gym": ("GymView", "TeamView", "from_gymnasium"),
    "subprocess": ("ProcessEnvironment",),
}  # fmt: skip
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "DELETION", "PAYMENT", "SENDING", "TEST_SEEDS", "TRAIN_SEEDS", "VALIDATION_SEEDS",
    "ActionFilter", "AllowedHosts", "AndroidWorldEnvironment", "AndroidWorldProcess",
    "AutoWebBench", "Confirm", "CoordinationEnvironment", "Done", "Episodic", "GymView",
    "InventedPhone", "Mind2Web", "MiniWobBrowser", "MiniWobEnvironment", "PhoneEnvironment",
    "ProcessEnvironment", "Rule", "SplitPhone", "Stateful",
    "TeamView", "Visit", "WebBrowser", "WebEnvironment", "WebTask", "Wrapper",
    "check_environment", "contract_report", "find_browser", "from_gymnasium", "phone",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
