"""Digests of trained weights, which show that two runs ended with equal ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel


def digest(model: LocalModel, adapters: Iterable[str]) -> str:
    """Digest of the weights of these adapters, in this order."""
    state = hashlib.blake2b(digest_size=16)
    for name in adapters:
        for parameter in model.adapter_parameters(name):
            state.update(parameter.detach().numpy().tobytes())
    return state.hexdigest()
