"""A base model of which each process holds a part (FSDP2), through accelerate.

The weights of adapters are small and stay whole in every process. So updates, checkpoints and
versions of adapters work as without FSDP; only forwards are made by all processes together.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from swarm_ui.errors import ConfigError
from swarm_ui.optim.update.distributed.processes import Processes

_ADAPTERS = r".*\.lora_.*"
"""Modules of peft that hold the weights of adapters."""


def sharding_wanted() -> bool:
    """Whether ``accelerate launch`` was started with a configuration for FSDP."""
    return os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"


def shard_base(module: nn.Module, processes: Processes) -> None:
    """Divide the weights of a base model among the processes, in place.

    Every process calls this with the same model. Afterwards all of them must make the same number
    of forwards at the same time. ``processes.sharded`` is then true.

    Args:
        module: a transformers model, or peft's model around it.
        processes: the processes of a launch with a configuration for FSDP2.

    Raises:
        ConfigError: accelerate has no FSDP on these devices, or the configuration is for FSDP1.
    """
    from accelerate import Accelerator  # type: ignore[import-untyped]

    accelerator = Accelerator()
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin is None:
        raise ConfigError(
            f"FSDP: accelerate cannot divide a model on the device '{processes.device.type}'; "
            "expected one GPU for each process. Start without the FSDP configuration: then each "
            "process holds the whole base model"
        )
    if not accelerator.is_fsdp2:
        raise ConfigError(
            "FSDP: expected fsdp_version: 2 in the configuration of accelerate, got "
            f"{plugin.fsdp_version}"
        )
    network: Any = module
    if hasattr(network, "get_base_model"):
        network = network.get_base_model()
    plugin.ignored_modules = _ADAPTERS
    # accelerate wants an optimiser beside the model. Adapters get one in each update, and the base
    # is never trained, so this one is not used.
    frozen = torch.optim.SGD(network.parameters(), lr=0.0)
    accelerator.prepare(network, frozen)
    processes.sharded = True
