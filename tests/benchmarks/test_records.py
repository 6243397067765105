"""Records of benchmarks: reading, layout, and the files of a study that they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.studies.columns import Columns
from benchmarks.studies.restore import found_files, packed_files, recorded_files, restore
from benchmarks.support import records
from benchmarks.support.records import (
    command_of,
    read_record,
    record_path,
    write_record,
)
from swarm_ui.errors import ConfigError

RESULTS = records.RESULTS
NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
JOBS = [[f"task-{k % 5}", 20_000_000 + k] for k in range(30)]
CELL: dict[str, Any] = {
    "arm": "a", "seconds": 2.0, "rollouts": [0.5, None], "graph": [],
    "outcomes": {"apps": [
        {"template": task, "seed": seed, "value": float(seed % 3 == 0), "run": 1}
        for task, seed in JOBS
    ]},
    "jobs": JOBS, "masked": [1.0, None] * 9, "counts": [0, 1] * 9, "flags": [True, False] * 9,
    "edges": [[["a", "b"], ["b", "c"]]] * 9, "uneven": [[1], [1, 2]] * 9, "empty": [[], {}] * 9,
}  # fmt: skip


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    steps: int = 3


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of records; :data:`NAMES` are those of the source."""
    folder = tmp_path / "results"
    monkeypatch.setattr(records, "RESULTS", folder)
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    (folder / "cells").mkdir(parents=True)
    (folder / "settings.json").write_bytes(msgspec.json.encode(Settings()))
    for name in ("a-1", "a-2"):
        (folder / "cells" / f"{name}.json").write_bytes(msgspec.json.encode(CELL) + b"\n")
    return folder


def keep(study: Path) -> None:
    files = found_files(study, ("settings.json", "cells/*.json", "missing.json"))
    write_record("some", {"rows": [1, 2]}, packed_files(files))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_of_the_source_is_small_and_keeps_its_layout(name: str) -> None:
    kept = (RESULTS / f"{name}.json").read_bytes()
    assert len(kept) < 500_000
    document = msgspec.json.decode(kept)
    files = document.pop(records.FILES, None)
    write_record(name, document, files)
    assert record_path(name).read_bytes() == kept


def test_an_absent_or_damaged_record_names_the_command_that_makes_it(results: Path) -> None:
    with pytest.raises(ConfigError) as absent:
        read_record("credit", dict[str, Any])
    assert str(absent.value) == (
        "nothing is recorded: there is no 'benchmarks/results/credit.json'; "
        "'python -m benchmarks.studies.credit --out FOLDER --record' makes it"
    )
    results.mkdir()
    record_path("scale").write_text("[1", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cannot be read: .*speed.ray --record' makes it again"):
        read_record("scale", dict[str, Any])
    assert "--train-teams" in command_of("windows")


@pytest.mark.parametrize("record", NAMES)
def test_the_command_of_each_record_exists(record: str) -> None:
    words = command_of(record).split()
    file = words[1] if words[1] != "-m" else words[2].replace(".", "/")
    place = RESULTS.parents[1] / file
    assert place.is_file() or place.with_suffix(".py").is_file() or (place / "__main__.py").exists()


def test_the_compact_form_loses_nothing() -> None:
    columns = Columns()
    packed = msgspec.json.encode([columns.packed(CELL), columns.packed([*JOBS])])
    again = Columns(msgspec.json.decode(msgspec.json.encode(columns.all)))
    cell, jobs = again.unpacked(msgspec.json.decode(packed))
    assert msgspec.json.encode(cell) == msgspec.json.encode(CELL)  # 1 and 1.0 are not the same here
    assert jobs == JOBS
    assert packed.count(b"task-") == 0 and b'"0100100' in packed
    shared = msgspec.json.encode(columns.all)
    assert shared.count(b"task-") == len(JOBS)  # of three lists with these tasks


def test_files_are_restored_and_existing_ones_stay(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(study)
    assert read_record("some", dict[str, Any]) == {"rows": [1, 2]}
    text = record_path("some").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith('   "cells/a-')]
    assert len(lines) == 2 and max(map(len, lines)) < 1_000
    other = tmp_path / "other"
    (other / "cells").mkdir(parents=True)
    (other / "cells" / "a-2.json").write_text("mine", encoding="utf-8")
    restore("some", other, {"settings.json": Settings()})
    assert "restored 1 files of the record 'some'; 1 were there" in capsys.readouterr().err
    assert (other / "cells" / "a-2.json").read_text(encoding="utf-8") == "mine"
    first = (other / "cells" / "a-1.json").read_bytes()
    assert first == (study / "cells" / "a-1.json").read_bytes()
    (other / "cells" / "a-2.json").unlink()
    restore("some", other, {"settings.json": Settings()})
    assert recorded_files("some") == found_files(other, ("**/*.json",))


def test_other_settings_are_refused_before_anything_is_written(study: Path, tmp_path: Path) -> None:
    keep(study)
    other = tmp_path / "other"
    with pytest.raises(ConfigError, match=r"record 'some' .* other settings \(steps=3, now 4\)"):
        restore("some", other, {"settings.json": Settings(steps=4)})
    assert not other.exists()
    other.mkdir()
    (other / "settings.json").write_bytes(msgspec.json.encode(Settings(steps=5)))
    with pytest.raises(ConfigError, match=r"'.*other' was started with other options \(steps=5"):
        restore("some", other, {"settings.json": Settings()})
    assert list(other.rglob("*.json")) == [other / "settings.json"]


def test_a_record_without_cells_says_so(tmp_path: Path) -> None:
    write_record("some", {"rows": []})
    with pytest.raises(ConfigError, match=r"record 'some' has no cells .* measures all again"):
        restore("some", tmp_path, {})
