"""Two runs compared on the same episodes."""

from __future__ import annotations

from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.report.results import ArmResult, Comparison, compared, existing_results
from swarm_ui.trace.jsonl import iter_jsonl


def compare_runs(ours: str | Path, theirs: str | Path) -> list[Comparison]:
    """One row for each split, and one for all if there are several.

    Raises:
        ConfigError: the runs have no episode in common, or cannot be read.
    """
    rows = compared(arms_of(str(ours)), arms_of(str(theirs)))
    if not rows:
        raise ConfigError(
            f"'{ours}' and '{theirs}' have no episode in common (same split, task, seed and "
            "version of the success check): play both with the same environment, split, seed and "
            "number of episodes"
        )
    return rows


def arms_of(source: str) -> list[ArmResult]:
    """The results of a run's folder, or of the episodes of a trace file.

    Raises:
        ConfigError: the source cannot be read.
    """
    path = Path(source)
    if path.is_file():
        return [ArmResult.of_episodes("", iter_jsonl(path))]
    return existing_results(path).arms
