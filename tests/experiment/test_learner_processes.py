"""Settings of a training in several processes."""

from __future__ import annotations

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, CriticSection, EnvironmentSection, ModelSection
from swarm_ui.experiment.training.learner_processes import (
    check_processes,
    join_processes,
    leading,
    placed,
)
from swarm_ui.optim.update.distributed.processes import Processes


def second_of_two() -> Processes:
    group = object.__new__(Processes)
    group.rank = group.local_rank = 1
    group.size = 2
    return group


def config(critic: CriticSection | None = None, **model: str) -> Config:
    return Config(
        environment=EnvironmentSection(name="phone"),
        model=ModelSection(**model),  # type: ignore[arg-type]
        critic=critic or CriticSection(),
    )


def test_one_process_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")  # as some schedulers set it
    assert join_processes() is None
    with leading(None) as learners:
        assert learners is None


def test_each_process_has_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    group = second_of_two()
    assert placed(ModelSection(device="cuda"), group).device == "cuda:1"
    assert placed(ModelSection(device="cuda"), None).device == "cuda"
    assert placed(ModelSection(), group).device == "cpu"
    for one in ("cuda:0", "auto"):
        with pytest.raises(ConfigError, match=rf"with 2 processes.* got '{one}'"):
            check_processes(config(device=one), group)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    assert placed(ModelSection(device="cuda"), group).device == "cpu"


def test_a_divided_model_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    group, url = second_of_two(), "http://localhost:1/v1"
    check_processes(config(), group)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ConfigError, match="a server that acts with the learner's adapters"):
        check_processes(config(), group)
    with pytest.raises(ConfigError, match="name another one with --critic-model"):
        check_processes(config(CriticSection(kind="llm"), actor=url), group)
    check_processes(config(CriticSection(kind="llm", url=url), actor=url), group)
    with pytest.raises(ConfigError, match="cannot divide a quantised model"):
        check_processes(config(actor=url, quantize="4bit"), group)
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")
    with pytest.raises(ConfigError, match="fsdp_cpu_ram_efficient_loading: false"):
        check_processes(config(actor=url), group)
