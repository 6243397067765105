"""The interface of a model that can be trained."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from swarm_ui.model import Decision


@runtime_checkable
class HoldsAdapters(Protocol):
    """A network with named LoRA adapters that can be trained, in this process."""

    @property
    def module(self) -> nn.Module:
        """The network with its adapters; in evaluation mode outside :meth:`activate`."""
        ...

    @property
    def adapters(self) -> tuple[str, ...]: ...

    def add_adapter(
        self,
        name: str,
        rank: int = 16,
        alpha: float = 32,
        copy_from: str | None = None,
        layers: Sequence[int] | None = None,
    ) -> None:
        """Add an adapter that initially changes nothing, or copies another adapter.

        ``layers``: the numbers of the transformer layers that it changes, from 0; ``None``: all. It
        is passed only if :attr:`TeamConfig.lora_layers` is set.
        """
        ...

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The parameters of an adapter, in the same order for all adapters of one shape."""
        ...

    def activate(self, name: str) -> AbstractContextManager[object]:
        """A context in which only the adapter ``name`` is active and has gradients, and the module
        is in training mode."""
        ...

    def bump(self, name: str) -> object:
        """Raise the version of the adapter after its weights changed."""
        ...


@runtime_checkable
class Trainable(HoldsAdapters, Protocol):
    """A causal language model with named LoRA adapters, in this process."""

    @property
    def pad_id(self) -> int: ...

    def reference(self) -> AbstractContextManager[object]:
        """A context in which no adapter is active."""
        ...

    def encode(
        self, decision: Decision, reply: str, *, adapter: str | None = None
    ) -> tuple[list[int], list[int]]:
        """Token ids of the prompt, exactly as the policy gets it with this adapter, and of a reply,
        exactly as the policy would generate it, with its end token.

        A model with an attribute ``encodes_text`` that is true encodes any text. Others need
        encode only replies that hold a valid action, and raise ``ModelError`` for the rest.
        """
        ...

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) of the replies under the adapter in use.

        Args:
            ids: ``[B, T]``: prompt, reply, padding on the right.
            attention_mask: ``[B, T]``, 1 on prompt and reply.
            reply_mask: ``[B, T]``, 1 on the reply's tokens.

        Returns:
            Sum over the reply's tokens, and their number; both ``[B]``.
        """
        ...

    def save_adapters(self, folder: Path) -> object: ...

    def load_adapters(self, folder: Path) -> object:
        """Load the files of :meth:`save_adapters`, including versions."""
        ...
