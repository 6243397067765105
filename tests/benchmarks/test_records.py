"""Records of speed: reading, writing and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.support import records
from benchmarks.support.records import command_of, read_record, record_path, write_record
from swarm_ui.errors import ConfigError

NAMES = sorted(path.stem for path in records.RESULTS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_each_record_exists(name: str) -> None:
    module = command_of(name).split()[2]
    assert (records.RESULTS.parents[1] / f"{module.replace('.', '/')}.py").is_file()


def test_a_record_is_written_and_an_absent_or_damaged_one_names_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    with pytest.raises(ConfigError, match="speed"):
        read_record("scale", dict[str, Any])
    write_record("scale", {"rows": [1]})
    assert read_record("scale", dict[str, Any]) == {"rows": [1]}
    record_path("scale").write_text("[1", encoding="utf-8")
    with pytest.raises(ConfigError, match="speed"):
        read_record("scale", dict[str, Any])
