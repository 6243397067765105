"""Language models of transformers in two processes: whole in each, and divided by FSDP2."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from accelerate.state import DistributedType, PartialState  # type: ignore[import-untyped]
from learning_fakes import click, screen
from process_group import Work, in_processes
from safetensors.torch import load_file, save_file
from tiny_causal import network, tokenizer
from torch.distributed.tensor import DTensor

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.nodes import CausalModel
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, Method, UpdateConfig
from swarm_ui.optim.update.distributed.learners import Learners, NewAdapter, follow
from swarm_ui.optim.update.distributed.processes import Processes

WORDS = ["Save", "Back", "Help"]
CONFIG = UpdateConfig(
    method="dpo", steps=1, batch_size=3, lr=1e-2, warmup=1, micro_batch_tokens=1, beta=0.2
)
"""Every pair is a forward, and one process has two of them where the other has one."""
SHAPE = NewAdapter(rank=4, alpha=8)


def examples(method: Method) -> list[PreferencePair] | list[ScoredReply]:
    screens = [
        Decision(observation=screen(WORDS, goal=f"press {WORDS[k % 3]} " * (1 + k)))
        for k in range(4)
    ]
    if method == "pg":
        return [
            ScoredReply(node="agent_0", decision=screens[k], reply=click(k % 3, WORDS[k % 3]),
                        advantage=(-1.0) ** k)
            for k in range(4)
        ]  # fmt: skip
    return [
        PreferencePair(
            node="agent_0",
            decision=screens[k],
            chosen=click(k % 3, WORDS[k % 3]),
            rejected=click((k + 1) % 3, WORDS[(k + 1) % 3]),
        )
        for k in range(4)
    ]


def model() -> CausalModel:
    words = tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return CausalModel(network("llama", len(words)), words)


def with_adapter() -> CausalModel:
    made = model()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        made.add_adapter("agent_0", SHAPE.rank, SHAPE.alpha)
    return made


def updated(
    made: CausalModel, learners: Learners | None, folder: Path, method: Method = "dpo"
) -> None:
    """Two updates, the adapter as it is saved, and the gradients of the first update.

    Not those of the second: AdamW makes the rounding of gradients near zero visible in the weights.
    """
    trainer = AdapterTrainer(made, replace(CONFIG, method=method))
    gradients: dict[str, torch.Tensor] = {}
    for seed in (1, 2):
        task = trainer.prepare("agent_0", examples(method), random.Random(seed))
        if learners is None:
            trainer.train(task)
        else:
            (stats,) = learners.update(made, [task], trainer.config, SHAPE)
            assert stats.steps == 1 and stats.process is None
        for k, parameter in enumerate(made.adapter_parameters("agent_0")):
            assert parameter.grad is not None
            gradients.setdefault(str(k), parameter.grad.clone())
    made.save_adapters(folder)
    save_file(gradients, folder / "gradients.safetensors")


def leading(folder: Path, method: Method, *, divided: bool) -> Work:
    def work(processes: Processes) -> None:
        learners, made = Learners(processes), with_adapter()
        _as_with_fsdp(divided)
        learners.begin(b"")
        learners.ready(made)
        assert processes.sharded is divided
        kinds = {isinstance(p, DTensor) for n, p in made.network.named_parameters()
                 if ".lora_" not in n}  # fmt: skip
        assert kinds == {divided}
        updated(made, learners, folder, method)
        learners.close()

    return work


def following(divided: bool) -> Work:
    def work(processes: Processes) -> None:
        _as_with_fsdp(divided)
        # Its adapter is added after the base was divided.
        follow(processes, lambda _: model())

    return work


def _as_with_fsdp(wanted: bool) -> None:
    """The environment of a launch with a configuration for FSDP2, on GPUs.

    accelerate does not use FSDP for processes on CPUs; only its name for the kind of processes is
    another one here, and its code for GPUs runs with gloo.
    """
    if wanted:
        os.environ |= {
            "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2",
            "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP", "FSDP_RESHARD_AFTER_FORWARD": "true",
        }  # fmt: skip
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU


@pytest.mark.parametrize(
    ("method", "divided"),
    [
        pytest.param("dpo", False, id="dpo"),
        pytest.param("rft", False, id="rft", marks=pytest.mark.slow),
        pytest.param("pg", False, id="pg", marks=pytest.mark.slow),
        pytest.param("dpo", True, id="dpo, divided", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_two_processes_are_one(tmp_path: Path, method: Method, divided: bool) -> None:
    updated(with_adapter(), None, tmp_path / "one", method)
    works = [leading(tmp_path / "two", method, divided=divided), following(divided)]
    in_processes(works, tmp_path)
    one, two = (load_file(tmp_path / name / "gradients.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys() and max(g.abs().max().item() for g in one.values()) > 1e-3
    for key, expected in one.items():
        gap = (two[key] - expected).abs().max().item()
        assert gap <= 1e-4 * max(g.abs().max().item() for g in one.values()), key
    saved = [tmp_path / name / "agent_0" for name in ("one", "two")]
    two = load_file(saved[1] / "adapter_model.safetensors")
    with_adapter().save_adapters(tmp_path / "start")
    start = load_file(tmp_path / "start" / "agent_0" / "adapter_model.safetensors")
    assert max((two[key] - start[key]).abs().max().item() for key in two) > 1e-3
    assert read_metadata(saved[0]) == read_metadata(saved[1])
    again = model()
    again.load_adapters(tmp_path / "two")  # the fingerprint of the base is that of the whole one
    assert again.adapters == ("agent_0",)


def test_accelerate_has_no_fsdp_on_cpus(tmp_path: Path) -> None:
    def first(processes: Processes) -> None:
        os.environ["ACCELERATE_USE_FSDP"], os.environ["FSDP_VERSION"] = "true", "2"
        learners = Learners(processes)
        learners.begin(b"")
        with pytest.raises(ConfigError, match="cannot divide a model on the device 'cpu'"):
            learners.ready(model())
        learners.close()

    def other(processes: Processes) -> None:
        os.environ["ACCELERATE_USE_FSDP"], os.environ["FSDP_VERSION"] = "true", "2"
        follow(processes, lambda _: model())

    in_processes([first, other], tmp_path)


def test_the_configuration_of_the_documentation_is_one_of_accelerate() -> None:
    from accelerate.commands.config.config_args import (  # type: ignore[import-untyped]
        load_config_from_file,
    )

    page = Path(__file__).resolve().parents[4] / "docs" / "howto" / "accelerate_fsdp.yaml"
    found = load_config_from_file(str(page))
    assert found.distributed_type == DistributedType.FSDP and found.num_processes == 4
    assert found.fsdp_config["fsdp_version"] == 2
    assert found.fsdp_config["fsdp_cpu_ram_efficient_loading"] is False


def test_another_base_model_is_an_error(tmp_path: Path) -> None:
    def first(processes: Processes) -> None:
        learners = Learners(processes)
        learners.begin(b"")
        with pytest.raises(ConfigError, match="process 2 of 2 has loaded other base weights"):
            learners.ready(model())
        learners.close()

    def other(processes: Processes) -> None:
        made = model()
        with torch.no_grad():
            made.network.get_input_embeddings().weight.mul_(2.0)
        follow(processes, lambda _: made)

    in_processes([first, other], tmp_path)
