"""Distributions over the edges of a team, and how they are learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_ui.deprecation import renamed_names

if not TYPE_CHECKING:  # type checkers know only the present names
    __getattr__ = renamed_names(__name__)
