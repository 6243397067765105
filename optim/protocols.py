"""What training asks of the model it trains, which it does not own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import nn

from swarm_ui.action import Action
from swarm_ui.model import Decision


@runtime_checkable
class Trainable(Protocol):
    """A causal language model with named LoRA adapters, in this process."""

    @property
    def network(self) -> nn.Module:
        """The transformers (or peft) causal language model; in evaluation mode outside
        :meth:`activate`. Called with ``input_ids``, ``use_cache`` and ``logits_to_keep``."""
        ...

    @property
    def adapters(self) -> tuple[str, ...]: ...

    @property
    def pad_id(self) -> int: ...

    def add_adapter(
        self, name: str, *, rank: int = 16, alpha: int | None = None, copy_from: str | None = None
    ) -> None:
        """A new adapter: a zero change of the base, or a copy of another adapter."""
        ...

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """Its parameters, in an order that is the same for all adapters of one shape."""
        ...

    def activate(self, name: str) -> AbstractContextManager[object]:
        """Inside, ``name`` is the one adapter in use, only its weights take gradients, and the
        network is in training mode."""
        ...

    def reference(self) -> AbstractContextManager[object]:
        """Inside, no adapter is in use."""
        ...

    def encode(self, decision: Decision, action: Action) -> tuple[list[int], list[int]]:
        """Exactly the tokens the policy reads and would write: ids, and 1 on the reply's (which
        ends with the end token)."""
        ...

    def bump(self, name: str) -> object:
        """Raise the adapter's version, because its weights changed."""
        ...

    def save_adapters(self, folder: Path) -> object: ...

    def load_adapters(self, folder: Path) -> object:
        """Take up what :meth:`save_adapters` wrote, versions too."""
        ...
