"""Suites of AndroidWorld are upstream's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.environments.androidworld.suite import instance_seed, suite
from swarm_ui.errors import ConfigError


def test_jobs_are_upstreams_in_upstreams_order() -> None:
    jobs = suite(["WifiOn", "WifiOff"], combinations=2, seed=30)
    assert [task for task, _ in jobs] == ["WifiOff", "WifiOff", "WifiOn", "WifiOn"]
    assert len({seed for _, seed in jobs}) == 4
    # SHA-256 of "30_WifiOn_0" as a number, modulo 2**32.
    assert instance_seed(30, "WifiOn", 0) == jobs[2][1] == 3403284504
    same = suite(["WifiOn"], combinations=3, seed=30, identical=True)
    assert same == [jobs[2]] * 3
    with pytest.raises(ConfigError, match="combinations"):
        suite(["WifiOn"], combinations=0)


@given(st.integers(0, 2**40), st.text(min_size=1), st.integers(0, 50))
def test_seeds_fit_upstreams_generators(seed: int, task: str, number: int) -> None:
    assert 0 <= instance_seed(seed, task, number) < 2**32
