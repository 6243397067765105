"""The benchmark of coordination: its rows, and the tables of the page from the committed record."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from benchmark_scripts import FOLDER, benchmark_script

from benchmarks.support.records import read_record

PAGE = FOLDER.parent / "docs" / "coordination.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return benchmark_script("coordination")


def test_rows_of_a_policy(script: ModuleType) -> None:
    rows = script.rows_of("distributed", 4, 1)
    assert [r["task"] for r in rows] == [*script.KINDS, "all"]
    for r in rows:
        assert {"name", "task", "size", "success", "score", "low", "high", "messages"} <= set(r)
        assert r["success"] == r["score"] == r["high"] == 1.0 and r["networks"] == 3
        assert r["cpu_s"] > 0.0 and r["messages"] >= 16
    assert rows[-1]["episodes"] == 15
    assert all(r["score"] == 0.0 for r in script.rows_of("constant", 4, 1))


def test_the_page_shows_the_record(script: ModuleType) -> None:
    rows = read_record("coordination", dict[str, Any])["rows"]
    page = PAGE.read_text(encoding="utf-8")
    tables = script.page_tables(rows).split("\n\n")
    assert len(tables) == 2 and all(table in page for table in tables)
    for r in rows:
        if r["name"] == "distributed":
            assert r["success"] == 1.0
