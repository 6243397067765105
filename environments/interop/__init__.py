"""Environments as Gymnasium and PettingZoo environments (extra ``gym``), imported at first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.environments.interop.gymnasium_view import GymView
    from swarm_ui.environments.interop.pettingzoo_view import TeamView

__all__ = ["GymView", "TeamView"]

_LAZY = {"GymView": "gymnasium_view", "TeamView": "pettingzoo_view"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
