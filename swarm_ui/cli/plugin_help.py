"""Commands whose help names the installed plug-ins; and the names that no plug-in can have."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from swarm_ui.experiment.benchmarks import ENVIRONMENTS
from swarm_ui.experiment.loggers import LOGGERS
from swarm_ui.experiment.mistakes import CRITICS
from swarm_ui.experiment.plugins import Kind, plugin_names
from swarm_ui.experiment.wrapping import WRAPPERS
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS

OWN_NAMES: dict[Kind, tuple[str, ...]] = {
    "environments": tuple(ENVIRONMENTS), "models": (*SHIPPED_AGENTS, *PRETRAINED),
    "wrappers": tuple(WRAPPERS), "loggers": tuple(LOGGERS),
    "critics": CRITICS, "losses": (),
}  # fmt: skip
"""The names of this package, which come before those of plug-ins."""

_KINDS: dict[str, Kind] = {
    "words": "environments", "model": "models", "critic": "critics", "loss": "losses",
}  # fmt: skip
"""The plug-ins that an option or argument takes, by its name."""
_LEARNERS = ("train", "critic", "finetune")
"""Commands whose model learns, which a plug-in's model cannot."""


class PluginCommand(TyperCommand):
    """A command; names of plug-ins are looked up when its help is shown, not before."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        plain: list[tuple[Any, str]] = []
        for parameter in self.params:
            kind = _KINDS.get(parameter.name or "")
            if kind is None or (kind == "models" and self.name in _LEARNERS):
                continue
            names = [name for name in plugin_names(kind) if name not in OWN_NAMES[kind]]
            text = getattr(parameter, "help", None)
            if names and text:
                plain.append((parameter, text))
                vars(parameter)["help"] = f"{text}; plug-ins: {', '.join(names)}"
        try:
            super().format_help(ctx, formatter)
        finally:  # a second look must not name them twice
            for parameter, text in plain:
                vars(parameter)["help"] = text
