"""Pretrained language models by name: downloaded once, converted, and kept in the user's cache."""

from swarm_ui.nodes.models.pretrained.catalogue import (
    PRETRAINED,
    SHIPPED_ADAPTERS,
    PretrainedModel,
    ShippedAdapter,
    adapter_folder,
    find_model,
    model_folder,
    pulled_folder,
)

__all__ = [
    "PRETRAINED",
    "SHIPPED_ADAPTERS",
    "PretrainedModel",
    "ShippedAdapter",
    "adapter_folder",
    "find_model",
    "model_folder",
    "pulled_folder",
]
