"""Settings of a training in several processes."""

from __future__ import annotations

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.learner_processes import join_processes, leading, placed
from swarm_ui.experiment.model_settings import Agent, Language
from swarm_ui.optim.distributed import Processes


def second_of_two() -> Processes:
    group = object.__new__(Processes)
    group.rank = group.local_rank = 1
    group.size = 2
    return group


def test_one_process_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")  # as some schedulers set it
    assert join_processes() is None
    with leading(None) as processes:
        assert processes is None


def test_each_process_has_a_device_of_its_own() -> None:
    group = second_of_two()
    cuda = Language(name="m", device="cuda")
    assert placed(cuda, group) == Language(name="m", device="cuda:1")
    assert placed(cuda, None) == cuda
    assert placed(Agent(), group) == Agent()
    for one in ("cuda:0", "auto"):
        with pytest.raises(ConfigError, match=rf"with 2 processes.* got '{one}'"):
            placed(Language(name="m", device=one), group)
