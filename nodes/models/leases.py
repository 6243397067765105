"""Counts of the leases of adapter versions."""

from __future__ import annotations

from collections import Counter

from swarm_ui.errors import ModelError


def give_up(leases: Counter[str], version: str) -> bool:
    """Give up one lease of a version; return whether it was the last one.

    Raises:
        ModelError: the version is not leased.
    """
    if not leases[version]:
        raise ModelError(f"'{version}' is not leased; release what lease() returned, and only once")
    leases[version] -= 1
    return not leases[version]
