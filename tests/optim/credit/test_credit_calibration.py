"""How well scores separate right from wrong: figures by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.optim.credit.learned import auc, calibration_error


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    good = [s for s, right in rows if right]
    bad = [s for s, right in rows if not right]
    scores, right = [float(s) for s, _ in rows], [right for _, right in rows]
    found = auc(scores, right, range(len(rows)))
    if not good or not bad:
        assert found is None
    else:
        pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
        assert found is not None and found.mean == pytest.approx(sum(pairs) / len(pairs))


def test_intervals_draw_whole_episodes() -> None:
    rng = random.Random(0)
    scores = [float(rng.random() < 0.5) for _ in range(30)]
    right = [s > 0.5 if rng.random() < 0.8 else s < 0.5 for s in scores]
    many = 20  # messages of an episode that are all alike say no more than one
    one = auc(scores, right, range(30))
    alike = auc(scores * many, right * many, [*range(30)] * many)
    apart = auc(scores * many, right * many, range(30 * many))
    assert one is not None and alike is not None and apart is not None
    assert one.mean == alike.mean == apart.mean
    assert (alike.low, alike.high) == (one.low, one.high)
    assert alike.high - alike.low > 3 * (apart.high - apart.low)


def test_calibration_by_hand() -> None:
    scores = [0.9, 0.9, 0.3, 0.1, 0.1, 0.6, 0.6]
    right = [True, True, True, False, False, False, False]
    assert calibration_error(scores, right) == pytest.approx(
        (2 * 0.1 + 0.7 + 2 * 0.1 + 2 * 0.6) / 7
    )
    assert calibration_error([], []) is None
