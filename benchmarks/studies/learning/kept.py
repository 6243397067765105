"""What the record of the learning benchmark holds of its folder, to go on on another machine.

These are the parts of a cell's files from which its rows are computed. Traces, weights and the
costs of tests are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.studies.kept_results import chosen, kept_results
from benchmarks.studies.learning.cells import CELL_FILE
from benchmarks.studies.restore import found_files
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.teams import Arm
from swarm_ui.report.results import Results

SETTINGS_FILE = "settings.json"
"""The settings that all cells have in common, in the record and in a folder that was restored."""
_CONFIG = ("run_version", "trace_version", "name", "created", "config")
_MEASURED = (
    "kind", "iteration", "rollout_seconds", "update_seconds", "peak_memory_mb", "calls",
    "prompt_tokens", "completion_tokens", "steps", "tokens", "cpu_seconds",
)  # fmt: skip


def kept_files(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The files of all cells with results, by path, and the settings."""
    files: dict[str, Any] = {SETTINGS_FILE: dict(settings)}
    for path in sorted(folder.glob("*/results.json")):
        cell = path.parent.name
        results = kept_results(path.parent)
        if results is None:
            continue
        files[f"{cell}/results.json"] = results
        found = found_files(path.parent, ("config.json", CELL_FILE, "metrics.jsonl"))
        for name, value in found.items():
            files[f"{cell}/{name}"] = _compact(name, value)
    return files


def restored(results: Results, weights: Path, arms: Sequence[Arm]) -> bool:
    """Whether a cell is finished and came from a record: its results are here, its weights are not.

    Args:
        results: the results of the cell.
        weights: a file or folder of its weights.
        arms: the arms that it is tested on.

    Raises:
        ConfigError: an arm was not tested, which would need the weights.
    """
    if not results.arms or weights.exists():
        return False
    splits = dict.fromkeys(found.split for found in results.arms)
    missing = [
        f"{arm.name} on {split}"
        for split in splits
        for arm in arms
        if results.find(split, arm.name) is None
    ]
    if missing:
        cell = weights.parents[1] if weights.parent.name == "adapters" else weights.parent
        raise ConfigError(
            f"'{cell}' was restored from a record, which holds no weights, and these tests were "
            f"not played: {', '.join(missing)}. Delete that folder, and the same command trains "
            "and tests it again"
        )
    return True


def _compact(name: str, value: Any) -> Any:
    if name == "config.json":
        return chosen(value, _CONFIG)
    if name != "metrics.jsonl":
        return value
    lines = []
    for line in value:
        kept = chosen(line, _MEASURED)
        if line.get("updates"):
            kept["updates"] = [chosen(update, ("steps",)) for update in line["updates"]]
        if kept.keys() - {"kind", "iteration"}:
            lines.append(kept)
    return lines
