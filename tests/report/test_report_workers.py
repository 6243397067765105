"""The workers of a run in its report."""

from __future__ import annotations

import random
import re
from pathlib import Path

import msgspec
import pytest
from report_tab import opened_report

from swarm_ui.report import write_report
from swarm_ui.report.contents import ReportData, WorkerRow, WorkerTimeline
from swarm_ui.report.page import page
from swarm_ui.report.workers.timeline_chart import SLOTS, slots, timeline
from swarm_ui.report.workers.worker_rows import MOST_ROWS, worker_parts
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.worker_events import WORKER_FILE, WorkerEvent


def recorded(path: Path, events: list[WorkerEvent]) -> Path:
    """The folder of a run with these events."""
    run = RunDirectory.create(path, config={})
    lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
    (run.path / WORKER_FILE).write_bytes(lines)
    return run.path


def played(
    workers: int, episodes: int, *, nodes: tuple[str, ...] = ("",), lost: int | None = None
) -> list[WorkerEvent]:
    """Workers that play ``episodes`` in all, by a fixed seed."""
    draw = random.Random(5)
    events = [WorkerEvent(kind="session", worker=-1, at=1000.0)]
    free = []
    for k in range(workers):
        node = nodes[k % len(nodes)]
        events.append(WorkerEvent(kind="started", worker=k, at=1000 + draw.random(), node=node))
        free.append(events[-1].at)
    for job in range(episodes):
        worker = free.index(min(free))
        began = free[worker] + draw.random() * (3 if draw.random() < 0.3 else 0.1)
        environment, steps = draw.uniform(1, 6), draw.randint(2, 9)
        end = began + environment + draw.uniform(4, 30)
        apart = (end - began - environment / steps) / steps
        laps = tuple((k * apart, environment / steps) for k in range(steps))
        events.append(
            WorkerEvent(
                kind="finished", worker=worker, at=end, node=nodes[worker % len(nodes)], job=job,
                task="a", seed=job, success=True, queued=free[worker], began=began,
                model=end - began - environment, environment=environment, laps=laps,
            )
        )  # fmt: skip
        free[worker] = end
    if lost is not None:
        events.append(WorkerEvent(kind="lost", worker=lost, at=min(free) - 20, text="node died"))
    return events


def test_a_row_for_each_worker_and_where_the_time_went(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", played(4, 12, nodes=("10.0.0.1", "10.0.0.2"), lost=2))
    (table,), (drawn,) = worker_parts(run)
    assert [row[:3] for row in table.rows] == [
        ("10.0.0.1", 2, 6), ("10.0.0.2", 2, 6), ("all", 4, 12),
    ]  # fmt: skip
    for row in table.rows:
        shares = [float(str(row[k])) for k in (3, 5, 6, 7)]
        assert sum(shares) == pytest.approx(100, abs=0.3)
        assert 0 < float(str(row[4])) <= shares[0] + 0.1, "calls are a part of deciding"
    assert table.rows[0][-1] == 1 and table.rows[1][-1] == 0
    assert [row.name for row in drawn.rows] == [f"{k} 10.0.0.{k % 2 + 1}" for k in range(4)]
    assert "node died" in drawn.rows[2].detail and len(drawn.rows[2].losses) == 1
    html = write_report(run).read_text(encoding="utf-8")
    assert '<h2 id="workers">Workers</h2>' in html and "worker lost" in html
    assert html.count('viewBox="0 0 400 1"') == 4


def test_a_run_without_the_record_has_no_such_section(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", [])
    assert worker_parts(run) == ((), ())
    assert 'id="workers"' not in write_report(run).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_size_of_the_page_has_a_limit(tmp_path: Path) -> None:
    (_,), (small,) = worker_parts(recorded(tmp_path / "small", played(64, 1000)))
    (_,), (large,) = worker_parts(recorded(tmp_path / "large", played(1000, 8000)))
    assert len(small.rows) == MOST_ROWS and len(large.rows) <= MOST_ROWS
    assert "16 workers" in large.note and large.rows[0].name == "0–15"
    assert len(timeline(small)) < 400_000 and len(timeline(large)) < 400_000


def test_a_slot_has_the_colour_of_what_took_most_of_it() -> None:
    row = WorkerRow(
        name="0",
        parts=(("waiting", 0, 10), ("deciding", 10, 399), ("environment", 399.4, 400)),
    )
    found = slots(row, 400)
    assert len(found) == SLOTS and found[:11] == ["waiting"] * 10 + ["deciding"]
    assert found[398:] == ["deciding", "environment"]
    assert slots(WorkerRow(name="0", parts=(("deciding", 5, 5),)), 0) == [None] * SLOTS


def test_sessions_are_drawn_apart_and_the_last_three_at_most(tmp_path: Path) -> None:
    events = [
        msgspec.structs.replace(event, at=event.at + 10_000 * k)
        for k in range(5)
        for event in played(2, 3)
        if event.began is None
    ]
    done = [
        msgspec.structs.replace(
            e, at=e.at + 10_000 * k, began=(e.began or 0) + 10_000 * k,
            queued=(e.queued or 0) + 10_000 * k,
        )
        for k in range(5)
        for e in played(2, 3)
        if e.began is not None
    ]  # fmt: skip
    every = sorted([*events, *done], key=lambda event: event.at)
    (table,), drawn = worker_parts(recorded(tmp_path / "run", every))
    assert [t.title for t in drawn] == [
        f"Workers over time, session {k} of 5" for k in (3, 4, 5)
    ]  # fmt: skip
    assert all(t.seconds < 1000 for t in drawn), "the time between them is not drawn"
    assert table.rows[0][1:3] == (2, 15)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '" onload="x', "\x00"])
def test_names_and_reasons_are_escaped(text: str) -> None:
    row = WorkerRow(name=text, detail=text, parts=(("waiting", 0, 1),), losses=(0.5,))
    drawn = WorkerTimeline(title=text, seconds=1, rows=(row,), note=text)
    html = page(ReportData(title="run", summary="", timelines=(drawn,)))
    assert "<script>alert" not in html and 'onload="x' not in html and "\x00" not in html
    assert re.search(r'<svg viewBox="0 0 400 1"', html)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1440, False), (420, True)])
async def test_the_timeline_fits_the_window(
    chromium: str, tmp_path: Path, width: int, dark: bool
) -> None:
    run = recorded(tmp_path / "run", played(64, 1000, nodes=("10.0.0.1", "10.0.0.2"), lost=3))
    async with opened_report(
        chromium, write_report(run), width=width, dark=dark, ready="true"
    ) as tab:
        assert await tab.js("document.documentElement.scrollWidth") <= width
        bar = await tab.js("document.querySelector('.lanes svg').getBoundingClientRect().width")
        assert float(bar) > 0.6 * width  # type: ignore[arg-type]
        names = "[...document.querySelectorAll('.lanes > span')]"
        clipped = await tab.js(f"{names}.filter(s => s.scrollWidth > s.clientWidth + 1).length")
        assert clipped == 0, "the names of the workers can be read"
        marks = "[...document.querySelectorAll('.times i')].map(i => i.getBoundingClientRect())"
        assert await tab.js(f"{marks}.every((m, k, all) => !k || all[k - 1].right <= m.left)")
