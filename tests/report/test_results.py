"""The record of a run's results, and the comparison of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.report.results import ArmResult, Cost, Results, compared, mcnemar

JOBS = tuple((f"task-{k % 3}", k) for k in range(90))


def arm(outcomes: tuple[float | None, ...], **other: object) -> ArmResult:
    return ArmResult(split="apps", jobs=JOBS[: len(outcomes)], outcomes=outcomes, **other)  # type: ignore[arg-type]


def test_results_come_back_and_a_damaged_or_later_file_is_refused(tmp_path: Path) -> None:
    results = Results(arms=[arm((1.0,), work=Cost(calls=2))], labels=("simulated",))
    results.save(tmp_path)
    assert Results.load(tmp_path) == results
    for text in ('{"version": 99}', '{"version": 2, "arms": 1}', "[]", "["):
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(ConfigError, match=r"results\.json"):
            Results.load(tmp_path)


def test_a_result_takes_the_place_of_an_earlier_one() -> None:
    results = Results(arms=[])
    for value in (0.0, 1.0):
        results.put(ArmResult(split="apps", jobs=(("t", 1),), outcomes=(value,)))
    results.put(ArmResult(split="apps", seed=1, jobs=(("t", 2),), outcomes=(0.0,)))
    assert results.outcomes == [1.0, 0.0]


def test_only_episodes_that_both_played_without_a_fault_are_paired() -> None:
    (row,) = compared([arm((1.0, 0.0, None, 0.0, 1.0, 1.0))], [arm((0.0, 0.0, 1.0, 0.0, 1.0))])
    assert row.difference is not None
    assert (row.difference.n, row.better, row.worse, row.masked) == (4, 1, 0, 1)
    (masked,) = compared([arm((1.0, None))], [arm((0.0, 1.0))])
    assert masked.difference is None and masked.p is None
    assert compared([arm((1.0,))], [arm((1.0,), checker=2)]) == []
    assert mcnemar(5, 0) == pytest.approx(2 / 2**5)
