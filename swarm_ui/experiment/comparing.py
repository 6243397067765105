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
    """The results of a run's folder, of ``FOLDER:ARM``, or of the episodes of a trace file.

    Raises:
        ConfigError: the source cannot be read, has no such arm, or has several and none is named.
    """
    folder, colon, arm = source.rpartition(":")
    named = bool(colon) and not Path(source).exists()
    path = Path(folder) if named else Path(source)
    if path.is_file():
        return [ArmResult.of_episodes("", iter_jsonl(path))]
    arms = existing_results(path).arms
    known = list(dict.fromkeys(found.arm for found in arms))
    if named and arm not in known:
        raise ConfigError(f"'{path}' has no arm '{arm}'; it has {', '.join(known)}")
    if not named and len(known) > 1:
        raise ConfigError(f"'{path}' has several arms: name one as '{path}:{known[0]}', "
                          f"or {', '.join(known[1:])}")  # fmt: skip
    return [found for found in arms if not named or found.arm == arm]
