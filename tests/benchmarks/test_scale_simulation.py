"""The simulation of many workers, where queueing theory gives the result."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("simpy", reason="simpy, from the extra dev, is not installed")

from benchmarks.scaling.latencies import Latencies
from benchmarks.scaling.simulation import Costs, Setup, binds_at, capacity, ideal_rate, simulate

FREE = Costs(
    receive=1e-6, write=0.0, commit=0.0, ray=1e-6, episode=0.001, decision=0.001, limiter=0.001
)
ONE = Setup(workers=1, latencies=Latencies.constant(0.2))


def test_workers_that_share_nothing_scale_perfectly() -> None:
    setup = replace(ONE, workers=16, latencies=Latencies.recorded(mean=0.2), episodes=40)
    found = simulate(setup, replace(FREE, episode=0.0, decision=0.0))
    assert found.efficiency == pytest.approx(1.0, abs=0.05)
    assert max(found.busy.values()) < 0.01


def test_a_busy_driver_limits_the_rate_to_what_it_can_receive_and_write() -> None:
    costs = replace(FREE, receive=0.004, write=0.016)
    setup = replace(ONE, workers=100, together=8)
    found = simulate(setup, costs)
    assert found.rate == pytest.approx(50.0, rel=0.03)  # they end in groups
    assert found.bottleneck == "driver's loop"
    assert binds_at(setup, costs)["driver's loop"] == pytest.approx(50 / ideal_rate(setup, costs))


def test_a_slow_disk_limits_single_writes_and_not_groups() -> None:
    costs = replace(FREE, commit=0.02)
    alone = replace(ONE, workers=100, together=1)
    found = simulate(alone, costs)
    assert found.rate == pytest.approx(50.0, rel=0.02)
    assert found.bottleneck == "trace writer" and found.busy["driver's loop"] < 0.01
    assert binds_at(alone, costs)["trace writer"] == pytest.approx(50 / ideal_rate(alone, costs))
    grouped = replace(alone, together=64)
    assert capacity(grouped, costs)["trace writer"] == pytest.approx(64 * 50)
    assert simulate(grouped, costs).efficiency > 0.9


def test_a_model_server_limits_the_rate_to_its_slots() -> None:
    setup = replace(ONE, workers=64, slots=8)
    found = simulate(setup, FREE)
    assert capacity(setup, FREE)["model server"] == pytest.approx(8 / (5 * 0.2))
    assert found.rate == pytest.approx(8 / (5 * 0.2), rel=0.05)  # eight end at the same time
    assert found.bottleneck == "model server"


def test_leases_lift_the_limit_of_a_limiter() -> None:
    costs = replace(FREE, limiter=0.01)
    setup = replace(ONE, workers=64, lease=1)
    alone = simulate(setup, costs)
    assert alone.rate == pytest.approx(1 / (5 * 0.01), rel=0.05)  # they end in groups
    assert alone.bottleneck == "limiter"
    assert simulate(replace(setup, lease=20), costs).efficiency > 0.9


def test_one_machine_shares_its_cores_and_waiting_for_the_disk_takes_none() -> None:
    costs = replace(FREE, receive=0.001, commit=0.010, ray=0.001, episode=0.003, decision=0.009)
    latencies = Latencies.recorded(mean=0.01)  # else all workers end at the same time
    setup = replace(ONE, workers=64, cores=2, latencies=latencies, episodes=16)
    found = simulate(setup, costs)
    assert found.rate == pytest.approx(2 / 0.05, rel=0.05)
    assert found.bottleneck == "cores"
    assert found.rate < capacity(setup, costs)["driver's loop"]


def test_equal_settings_give_equal_outcomes() -> None:
    setup = replace(ONE, workers=8, latencies=Latencies.recorded(mean=0.2))
    assert simulate(setup, FREE) == simulate(setup, FREE)


def test_the_recorded_sample_is_what_it_says() -> None:
    whole = Latencies.recorded()
    assert len(whole.seconds) == 200
    assert 6 < whole.mean < 8
    assert Latencies.recorded(mean=0.2).mean == pytest.approx(0.2)
