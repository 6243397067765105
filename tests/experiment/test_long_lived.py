"""What a program imports costs the garbage collector nothing afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from swarm_ui.experiment.models import long_lived


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_what_exists_at_the_end_is_exempt_from_collection() -> None:
    exempt = gc.get_freeze_count()
    with long_lived():
        assert not gc.isenabled()
        made = [[k] for k in range(1_000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= exempt + len(made)


def test_a_less_frequent_collection_stays() -> None:
    gc.set_threshold(700, 10, 10)
    with long_lived():
        pass
    assert gc.get_threshold()[0] > 700
    gc.set_threshold(10**6, 5, 5)
    with long_lived():
        pass
    assert gc.get_threshold() == (10**6, 5, 5)


def test_an_error_ends_it_too() -> None:
    with pytest.raises(ImportError), long_lived():
        raise ImportError
    assert gc.isenabled()
