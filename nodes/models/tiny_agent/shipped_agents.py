"""The agents of this architecture that are included in this package."""

from __future__ import annotations

import os
from pathlib import Path

BASE_AGENT = Path(__file__).parent / "base_agent"
"""The base agent: stage 1 with two demonstrations of each training template of the phone. All
published studies start from it."""
GENERAL_AGENT = Path(__file__).parent / "general_agent"
"""The base agent after more stage 1, with demonstrations on many devices with invented apps."""
SHIPPED_AGENTS: dict[str, Path] = {"base": BASE_AGENT, "general": GENERAL_AGENT}
"""Every agent in this package, by the name under which commands know it."""


def agent_folder(name: str | Path) -> Path:
    """The folder of an agent: one of :data:`SHIPPED_AGENTS`, or the folder that is named.

    Whether it holds an agent is not checked.
    """
    return SHIPPED_AGENTS.get(os.fspath(name)) or Path(name)
