"""What a program imports costs the garbage collector nothing afterwards."""

from __future__ import annotations

import gc

import pytest

from swarm_ui.experiment.models import long_lived


def test_what_exists_at_the_end_is_exempt_from_collection() -> None:
    exempt, threshold = gc.get_freeze_count(), gc.get_threshold()
    try:
        with pytest.raises(ImportError), long_lived():
            assert not gc.isenabled()
            made = [[k] for k in range(1_000)]
            raise ImportError
        assert gc.isenabled()
        assert gc.get_freeze_count() >= exempt + len(made)
        assert gc.get_threshold()[0] >= threshold[0]
    finally:
        gc.set_threshold(*threshold)
