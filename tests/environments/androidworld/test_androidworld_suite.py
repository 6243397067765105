"""Suites of AndroidWorld are upstream's."""

from __future__ import annotations

from swarm_ui.environments.androidworld.suite import instance_seed, suite


def test_jobs_are_upstreams_in_upstreams_order() -> None:
    jobs = suite(["WifiOn", "WifiOff"], combinations=2, seed=30)
    assert [task for task, _ in jobs] == ["WifiOff", "WifiOff", "WifiOn", "WifiOn"]
    assert len({seed for _, seed in jobs}) == 4
    # SHA-256 of "30_WifiOn_0" as a number, modulo 2**32.
    assert instance_seed(30, "WifiOn", 0) == jobs[2][1] == 3403284504
