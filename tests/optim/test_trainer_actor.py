"""Training in this process while a server acts, a stand-in for vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learning_fakes import ButtonWorld
from sent_rollouts import SentRollouts
from served_training import NAMES, Server, spoken, trained

# Copies that would end with their worker's process hold connections here.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


async def test_workers_ask_for_what_this_process_loads_once(tmp_path: Path) -> None:
    with Server() as server:
        here, episodes = await trained(server, tmp_path / "here")
    with Server() as server:
        there, again = await trained(server, tmp_path / "there", SentRollouts(ButtonWorld))
        assert server.adapters == {}
        assert sorted(server.loads) == sorted(set(server.asked))
        assert len(server.loads) == 2 * len(NAMES)
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    assert [e.success for e in again] == [e.success for e in episodes]
    assert [spoken(e) for e in again] == [spoken(e) for e in episodes]
    assert not list((tmp_path / "there/served").iterdir())
