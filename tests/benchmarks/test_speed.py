"""The measurements of speed run, and the pages show the figures that were kept."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft")

from tiny_causal import saved

from benchmarks.speed import edges, engine, language_model, models, ray, worlds
from benchmarks.speed.paced import Tally
from benchmarks.speed.report import ROOT, Section, on_page, recorded, show
from swarm_ui.nodes import CausalModel
from swarm_ui.trace.records import Episode

QUICK = Namespace(quick=True, peers=False)
SECTIONS = {
    section.record: section
    for each in (models.SECTIONS, ray.SECTIONS)
    for section in each.values()
    if section.record is not None
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("section", SECTIONS.values(), ids=[*SECTIONS])
def test_a_page_shows_its_record(section: Section) -> None:
    record = recorded(section)
    assert not record["origin"].get("dirty") and record["origin"]["commit"]
    for rows in section.tables(record):
        assert rows.cells and all(len(row) == len(rows.columns) for row in rows.cells)
    if section.page is not None:
        page = (ROOT / "docs" / section.page).read_text(encoding="utf-8")
        assert on_page(page, section, record) == page
        assert on_page(on_page(page, section, record), section, record) == page
        with pytest.raises(ValueError):
            on_page("a page without marks", section, record)


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(lambda: engine.tables(engine.measure(QUICK)), marks=pytest.mark.slow),
        lambda: edges.sample_tables(edges.measure_samples(QUICK)),
        lambda: worlds.phone_tables(worlds.measure_phone(QUICK)),
    ],
    ids=["engine", "edges", "phone"],
)
def test_a_measurement_runs(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SIZES", (100,))
    monkeypatch.setattr(edges, "SIZES", (5,))
    show(measured())


@pytest.mark.slow
def test_language_model(folder: Path) -> None:
    model = CausalModel.named(str(folder), prompt_format="compact")
    model = language_model.with_adapters(model, None)
    found = language_model.measure_ways(model, at_once=2, alone=1, repeats=1)
    show(language_model.tables(found))
    assert all(min(by.values()) > 0 for by in found["decisions_per_s"].values())
    assert found["vs_generate"] > 0 and found["merged_vs_routed"] > 0


@pytest.mark.ray
@pytest.mark.slow
def test_ray() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")
    found = ray.measure(Namespace(quick=True, part=ray.PARTS))
    show(ray.tables(found))
    assert (found["episodes_lost"], found["episodes_twice"], found["bit_equal"]) == (0, 0, True)
    assert found["weak_scaling"]


def test_lost_doubled_and_other_episodes_are_counted() -> None:
    def episode(seed: int, seconds: float = 0.0) -> Episode:
        return Episode(
            environment="e", task="t", seed=seed, policy="p", success=True, seconds=seconds
        )

    tally = Tally(2)
    tally.add([(0, episode(0)), (1, episode(1))])
    tally.add([(0, episode(0, seconds=9.0)), (1, episode(1))])
    assert (tally.lost, tally.twice, tally.equal) == (0, 0, True)
    tally.add([(0, episode(7)), (0, episode(7))])
    assert (tally.lost, tally.twice, tally.equal) == (1, 1, False)
