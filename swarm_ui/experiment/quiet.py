"""Third parties' chatter, kept out of the demo's output."""

from __future__ import annotations

from swarm_ui.cli.quiet import hush_transformers

__all__ = ["hush_transformers"]
