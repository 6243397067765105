"""The record of a run's results."""

from __future__ import annotations

from pathlib import Path

from swarm_ui.experiment.results import ArmResult, Cost, Results


def test_results_come_back(tmp_path: Path) -> None:
    arm = ArmResult(split="apps", jobs=(("t", 1),), outcomes=(1.0,), work=Cost(calls=2))
    results = Results(arms=[arm], labels=("simulated",))
    results.save(tmp_path)
    assert Results.load(tmp_path) == results


def test_a_result_takes_the_place_of_an_earlier_one() -> None:
    results = Results(arms=[])
    for value in (0.0, 1.0):
        results.put(ArmResult(split="apps", arm="a", jobs=(("t", 1),), outcomes=(value,)))
    results.put(ArmResult(split="apps", arm="a", seed=1, jobs=(("t", 2),), outcomes=(0.0,)))
    assert results.outcomes == [1.0, 0.0]
