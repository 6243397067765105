"""The first estimate of the time left is within a factor of two, on a simulated clock."""

from __future__ import annotations

import io
import random
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from swarm_ui.experiment import progress
from swarm_ui.experiment.progress import Bar, ProgressDisplay


class Clock:
    """Seconds that pass when a test says so, and the lines that are printed meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.console = Console(file=io.StringIO(), width=200)
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.display = ProgressDisplay(self.console)

    def first_estimate(self) -> tuple[float, float]:
        """The seconds that the first estimate told, and when, by the clock in the line's note."""
        out = self.console.file
        assert isinstance(out, io.StringIO)
        found = re.search(r"about (\d+) s left, .*?at ([\d.]+)$", out.getvalue(), re.MULTILINE)
        assert found is not None, out.getvalue()
        return float(found[1]), float(found[2])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def expect_close(clock: Clock) -> None:
    told, at = clock.first_estimate()
    right = clock.now - at
    assert right / 2 <= told <= right * 2, f"told {told:.0f} s, was {right:.0f} s"


def play(clock: Clock, bar: Bar, lengths: list[float], together: int, before: int = 0) -> None:
    """Episodes of these lengths, of which several run at the same time."""
    slots = [clock.now] * together
    ends = []
    for length in lengths:
        slots.sort()
        slots[0] += length
        ends.append(slots[0])
    for k, end in enumerate(sorted(ends), start=1):
        clock.now = end
        bar.update(before + k, f"at {end:.1f}")


@pytest.mark.parametrize("together", [1, 8])
@pytest.mark.parametrize("seed", range(2))
def test_episodes_that_run_together(clock: Clock, together: int, seed: int) -> None:
    draws = random.Random(seed)
    lengths = [draws.uniform(8.0, 24.0) for _ in range(60)]
    with clock.display.bar("play", len(lengths), together=together) as bar:
        play(clock, bar, lengths, together)
    expect_close(clock)


def test_steps_of_an_earlier_attempt_do_not_count(clock: Clock) -> None:
    with clock.display.bar("play", 1000, together=4) as bar:
        bar.start_from(900)
        play(clock, bar, [12.0] * 100, 4, before=900)
    expect_close(clock)


def test_nothing_is_told_before_something_is_known(clock: Clock) -> None:
    with clock.display.bar("play", 100, together=8) as bar:
        for k in range(1, 8):
            clock.now += 11.0
            bar.update(k)
        assert isinstance(clock.console.file, io.StringIO)
        assert "left" not in clock.console.file.getvalue()
        clock.now += 11.0
        bar.update(8)
        assert "about 1012 s left" in clock.console.file.getvalue()
