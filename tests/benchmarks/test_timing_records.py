"""Records of timings: their tables on the pages, and the check that the machine was idle."""

from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from benchmark_scripts import benchmark_script

from benchmarks.support.records import record_path

pytest.importorskip("peft")

from benchmarks import served_actor
from benchmarks.support import timing_record
from benchmarks.support.timing_record import BEGIN, END, IDLE_CORES, OtherLoad, with_recorded

ORIGIN = {"commit": "0123456789abcdef", "dirty": False, "command": "python x", "machine": "made up"}
BOTH = {"in_process": 4.0, "served": 1.5, "in_process_base": 4.5, "served_base": 5.0}
SERVED = {
    "origin": ORIGIN, "prompts": 96, "rounds": 3, "agents": 2, "other_cores": 0.01,
    "decisions_per_s": BOTH, "decisions_per_cpu_s": BOTH,
    "equal": {"adapters": 0.979, "base": 1.0}, "ties": {"adapters": 0.021, "base": 0.0},
    "largest_gap": {"adapters": 0.125, "base": 0.0},
}  # fmt: skip
WAYS = ("solo", "team", "talk", "team_shuffled", "team_adapters")
LOCAL = {
    "origin": ORIGIN, "at_once": 16, "repeats": 3, "other_cores": 0.01,
    "decisions_per_s": {name: {"1": 1.25, "16": 4.5} for name in WAYS},
    "others_per_s": {
        "generate": {"1": 0.75, "16": 4.25}, "merged": {"16": 5.0}, "vllm": {"16": 1.5},
    },
    "team_cost": {name: {"1": 1.1, "16": 1.9} for name in WAYS[1:]},
}  # fmt: skip


@pytest.fixture(scope="module")
def local_model() -> ModuleType:
    return benchmark_script("local_model")


def test_tables_of_records(local_model: ModuleType) -> None:
    text = served_actor.page_text(SERVED)
    assert "| vLLM's CPU build | 1.50 | 1.50 |" in text
    assert "With adapters, 97.9 % of the greedy replies are equal and another 2.1 %" in text
    table = local_model.page_text(LOCAL)
    assert "| one agent | 1.25 | 4.50 | – |" in table
    assert "| the same, each with its own adapter | 1.25 | 4.50 | 1.10, 1.90 |" in table
    assert "| vLLM's CPU build, one agent, the same adapter | – | 1.50 | – |" in table


@pytest.mark.parametrize("name", ["served_actor", "local_model"])
def test_a_page_shows_its_record(name: str, local_model: ModuleType) -> None:
    script = {"served_actor": served_actor, "local_model": local_model}[name]
    page, record = script.PAGE.read_text(encoding="utf-8"), record_path(script.NAME)
    if not record.exists():
        assert with_recorded(page, "") == page, "a page with figures that have no record"
        return
    found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    assert with_recorded(page, script.page_text(found)) == page
    assert not found["origin"]["dirty"] and found["origin"]["commit"]
    assert found["other_cores"] <= IDLE_CORES, "measured on a busy machine"


def test_the_marks_of_a_page() -> None:
    page = f"above\n\n{BEGIN} -->\n\nold\n\n{END} -->\n\nbelow\n"
    new = with_recorded(page, "new")
    assert new == page.replace("old", "new") and with_recorded(new, "new") == new
    assert with_recorded(page, "") == f"above\n\n{BEGIN} -->\n\n{END} -->\n\nbelow\n"
    with pytest.raises(ValueError, match="expected a page with the marks"):
        with_recorded("above", "new")


def test_figures_of_a_busy_machine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, busy, own = [100.0], [50.0], [10.0]
    monkeypatch.setattr(timing_record, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(timing_record, "busy_seconds", lambda: busy[0])
    others = OtherLoad(lambda: own[0])
    clock[0], busy[0], own[0] = 110.0, 60.5, 20.0
    assert others.check() == pytest.approx(0.05)
    busy[0] = 65.0
    with pytest.raises(SystemExit, match=r"other processes used 0\.50 cores"):
        others.check()
