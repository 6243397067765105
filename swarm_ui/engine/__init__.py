"""Runs a graph: schedule, scheduler, run state, replay and events."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.engine.telemetry import Spans

__all__ = ["Spans"]


def __getattr__(name: str) -> Any:
    if name != "Spans":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from swarm_ui.engine.telemetry import Spans

    return Spans
