"""Studies: cells on disk, tables from cells, the page, and a run that plays what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.cell import Cell, Origin, read_cells, write_cells
from benchmarks.study import Study, names, run, study
from benchmarks.table import PAGE, markdown, page_part, table, with_part
from swarm_ui.environments.web import find_browser
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import pulled_folder
from swarm_ui.stats import Outcome


def outcomes(values: Iterable[float | None], seed: int = 0) -> list[Outcome]:
    return [Outcome(f"task-{k % 3}", 100 + k, value, seed) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in ("real_pages", "talk") else pytest.mark.slow)
        for n in names()
    ],
)
def test_the_page_has_the_figures_of_the_record(name: str) -> None:
    found, cells = study(name), read_cells(name)
    made = table(found, cells, page_only=True)
    page = PAGE.read_text(encoding="utf-8")
    assert with_part(page, name, page_part(found, made)) == page, (
        f"docs/results.md differs from the record: python -m benchmarks {name} --page"
    )


@pytest.mark.parametrize("name", names())
def test_arms_and_named_differences_are_those_of_cells(name: str) -> None:
    found, cells = study(name), read_cells(name)
    there = {cell.arm for cell in [*cells, *(found.derived(cells) if found.derived else ())]}
    pairs = {arm for pair in (*found.named, *found.explored) for arm in pair}
    assert pairs | set(found.shown) <= there | set(found.means)
    for arm in found.arms:
        assert any(name == arm or name.startswith(f"{arm}; ") for name in there), arm


def test_cells_are_read_as_they_were_written(tmp_path: Path) -> None:
    cells = [
        Cell(arm="a", outcomes={"x": outcomes([1.0, 0.0, None])}, settings={"steps": 3}),
        Cell(
            arm="b", seed=2, outcomes={"x": outcomes([1.0, 0.5, 0.0], 2)},
            work={"training": {"cpu_s": 1.5}}, notes={"edges": [["a", "b"]]},
            origin=Origin(commit="c0ffee", dirty=True),
        ),
    ]  # fmt: skip
    path = tmp_path / "some.jsonl"
    write_cells("some", cells, path)
    assert read_cells("some", path) == cells
    assert path.read_bytes().count(b"task-0") == 1  # the list of episodes is kept once
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError):
        read_cells("some", path)


def test_doubtful_sources_are_marked() -> None:
    found = study("diversity")
    cells = read_cells("diversity")
    doubt = {row.arm for row in table(found, cells).rows if row.doubt == "changed source"}
    assert doubt == {"128 devices, few wordings", "128 devices, levels 1 to 3"}
    assert "128 devices, few wordings †" in markdown(found, table(found, cells), cells)


class Coin:
    """An arm that is played in no time."""

    def __init__(self, *, seeded: bool) -> None:
        self.seeded, self.played = seeded, list[int | None]()

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> list[Cell]:
        self.played.append(seed)
        values = outcomes([1.0, 0.0, 1.0], seed or 0)
        return [Cell(arm=f"{name}; vote", seed=seed, outcomes={"x": values})]


def test_a_run_plays_what_is_missing(tmp_path: Path) -> None:
    trained, base = Coin(seeded=True), Coin(seeded=False)
    some = Study(
        named=(("a; vote", "base; vote"),), arms={"a": trained, "base": base}, seeds=(1, 2)
    )
    path = tmp_path / "cells.jsonl"
    run("some", some, path=path, folder=tmp_path, seeds=[2])
    run("some", some, path=path, folder=tmp_path)
    run("some", some, path=path, folder=tmp_path)
    assert (trained.played, base.played) == ([2, 1], [None])
    (gap,) = table(some, read_cells("some", path)).contrasts
    assert (gap.difference, gap.named, gap.by_seed) == (0.0, True, [0.0, 0.0])
    with pytest.raises(ConfigError):
        run("some", some, path=path, folder=tmp_path, only=["other"])
    with pytest.raises(ConfigError):
        run("some", Study(named=()), path=path, folder=tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "split" else pytest.mark.slow)
        for name in names()
        if study(name).arms
    ],
)
def test_a_study_can_be_played(name: str, tmp_path: Path) -> None:
    if name == "real_pages" and pulled_folder("smollm2") is None:
        pytest.skip("SmolLM2 is not on this machine: swarm-ui models pull smollm2")
    if name in ("miniwob", "real_pages") and find_browser() is None:
        pytest.skip("there is no Chromium on this machine")
    found, path = study(name), tmp_path / "cells.jsonl"
    run(name, found, path=path, folder=tmp_path, quick=True)
    cells = read_cells(name, path)
    made = table(found, cells)
    chosen = found.trial or tuple(found.arms)
    assert {arm for arm in chosen for cell in cells if cell.arm.startswith(arm)} == set(chosen)
    assert {cell.origin.command for cell in cells} != {""}
    assert made.rows and all(0.0 <= row.success <= 1.0 for row in made.rows)
