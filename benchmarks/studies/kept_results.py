"""The part of a run's results that tables are computed from, for the records of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.report.results import Results

_RESULTS = ("version", "labels", "splits", "arms", "training_cpu_seconds")
_ARM = ("split", "arm", "label", "checker", "seed", "jobs", "outcomes")


def kept_results(run: Path) -> dict[str, Any] | None:
    """``results.json`` of a run with outcomes and numbers of calls, which ``Results.load`` reads.

    ``None``: the run has no results.
    """
    results = msgspec.json.decode(msgspec.json.encode(Results.load(run)))
    if not results["arms"]:
        return None
    results["arms"] = [
        {**chosen(arm, _ARM), "work": chosen(arm["work"], ("calls",))} for arm in results["arms"]
    ]
    return chosen(results, _RESULTS)


def chosen(value: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields of an object that it has of these."""
    return {name: value[name] for name in names if name in value}
