"""Credit: one number for every message of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from swarm_ui.trace import Trace


class CreditTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Credit of one decision's messages."""

    values: tuple[tuple[float | None, ...], ...]
    """Shape ``[rounds, agents]`` as in ``trace.agents``, each in [0, 1]; ``None`` = unscored."""
    source: str
    """Who gave it, such as ``"scripted critic"``; shown beside every figure."""
    rationale: str = ""


class CreditAssigner(Protocol):
    """Gives credit to the messages of one decision."""

    @property
    def name(self) -> str: ...

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """Credit for every message.

        Args:
            trace: the decision.
            state: the environment's snapshot at the decision, for critics that can use one.
        """
        ...


def mean_credit(tables: Sequence[CreditTable]) -> float | None:
    """Mean over all scored messages; ``None`` if none was scored."""
    scored = [v for t in tables for row in t.values for v in row if v is not None]
    return sum(scored) / len(scored) if scored else None
