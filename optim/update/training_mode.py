"""Computation of a network in training: precision, attention, activation checkpointing.

The settings apply inside :func:`training_mode` only and do not affect answers to requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from swarm_ui.errors import ConfigError
from swarm_ui.optim.update.update_config import UpdateConfig


def uses_autocast(module: nn.Module, settings: UpdateConfig) -> bool:
    """Whether an update computes in bfloat16; see :attr:`UpdateConfig.autocast`."""
    if settings.autocast is not None:
        return settings.autocast
    return any(p.dtype == torch.bfloat16 for p in module.parameters() if not p.requires_grad)


@contextmanager
def training_mode(module: nn.Module, settings: UpdateConfig) -> Iterator[None]:
    """Prepare a network for updates, and restore it at the end.

    With autocast, products are computed in bfloat16, and the weights of normalisations, which are
    few, are held in float32. Adapters that train are float32 already (peft does that).

    Raises:
        ConfigError: the network does not support a setting.
    """
    device = next(module.parameters()).device
    cast = uses_autocast(module, settings)
    eager = settings.eager_attention
    if eager is None:
        eager = cast and device.type == "cpu" and hasattr(module, "set_attn_implementation")
    with ExitStack() as prepared:
        if cast:
            prepared.enter_context(torch.autocast(device.type, torch.bfloat16))
            prepared.enter_context(_float_norms(module))
        if eager:
            prepared.enter_context(_eager_attention(module))
        if settings.checkpointing:
            prepared.enter_context(_checkpointing(module))
        yield


@contextmanager
def _float_norms(module: nn.Module) -> Iterator[None]:
    """Weights of normalisations (all vectors) in float32: they are multiplied with float32
    activations, and converting them each time costs a quarter of the speed on a CPU."""
    before = {
        p: p.data
        for p in module.parameters()
        # Weights that are divided among processes keep one type.
        if p.dtype == torch.bfloat16 and p.dim() == 1 and not isinstance(p, DTensor)
    }
    for parameter, value in before.items():
        parameter.data = value.float()
    try:
        yield
    finally:
        for parameter, value in before.items():
            parameter.data = value


@contextmanager
def _eager_attention(module: Any) -> Iterator[None]:
    """The plain implementation of attention: a product, a softmax, a product."""
    if not hasattr(module, "set_attn_implementation"):
        raise ConfigError(
            f"eager_attention: {type(module).__name__} has one implementation of attention only; "
            "leave the setting out"
        )
    network = module.get_base_model() if hasattr(module, "get_base_model") else module
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        yield
    finally:
        network.set_attn_implementation(before)


@contextmanager
def _checkpointing(module: Any) -> Iterator[None]:
    """Activation checkpointing of the layers, in training mode."""
    if not getattr(module, "supports_gradient_checkpointing", False):
        raise ConfigError(
            f"checkpointing: {type(module).__name__} does not support activation checkpointing; "
            "lower micro_batch_tokens instead"
        )
    # Without `use_reentrant=False` a layer whose input needs no gradient would get none at all.
    module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    try:
        yield
    finally:
        module.gradient_checkpointing_disable()


def memory_in_use_mb(device: torch.device) -> float | None:
    """Memory in use now, in 2**20 bytes: allocated on a GPU, resident of this process on a CPU.

    ``None``: unknown on this system.
    """
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device) / 2**20
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return None
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
