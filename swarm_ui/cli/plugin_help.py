"""Commands whose help names the plug-ins that are installed."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from swarm_ui.experiment.plugins.entry_points import Kind, plugin_names

_KINDS: dict[str, Kind] = {
    "env": "environments", "envs": "environments", "model": "models", "wrap": "wrappers",
    "log": "loggers",
}  # fmt: skip
"""The plug-ins that an option or argument takes, by its name."""
_LEARNERS = ("train", "critic", "finetune")
"""Commands whose model learns, which a plug-in's model cannot."""


class PluginCommand(TyperCommand):
    """A command; names of plug-ins are looked up when its help is shown, not before."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            kind = _KINDS.get(parameter.name or "")
            if kind is None or (kind == "models" and self.name in _LEARNERS):
                continue
            names, text = plugin_names(kind), getattr(parameter, "help", None)
            if names and text:
                vars(parameter)["help"] = f"{text}; plug-ins: {', '.join(names)}"
        super().format_help(ctx, formatter)
