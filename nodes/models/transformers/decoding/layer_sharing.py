"""Computes the lower layers of a network once for rows with equal prompts.

The adapters of a team may be equal in the lower layers and differ in the upper ones only (see
:attr:`~swarm_ui.optim.config.TeamConfig.own_layers`). For agents that read the same prompt, the
lower layers then compute the same, so they run on one row for all of these agents. Before the first
layer that differs, each row is repeated for its agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel


class Split(NamedTuple):
    """Rows of a batch that share the lower layers of a network."""

    layer: int
    """The first layer that is computed for every row."""
    shared: list[int]
    """The rows that stand for all rows with the same prompt in the layers below ``layer``."""
    of_row: list[int]
    """For each row, the position in ``shared`` of the row that stands for it."""


SharedLayers = Callable[[str | None, str | None], int]
"""The number of lowest layers that two adapter versions share; always fewer than all layers."""


def split_of(
    prompts: Sequence[list[int]], versions: Sequence[str | None], shared_layers: SharedLayers
) -> Split | None:
    """The split of a batch: rows with equal prompts share the layers below the first one in which
    their adapters differ. Rows whose adapters differ in the lowest layer share nothing; ``None`` if
    this holds for all rows."""
    shared: list[int] = []
    of_row: list[int] = []
    known: dict[tuple[int, ...], list[int]] = {}
    layers: list[int] = []
    for row, (ids, version) in enumerate(zip(prompts, versions, strict=True)):
        alike = known.setdefault(tuple(ids), [])
        for at in alike:
            if count := shared_layers(versions[shared[at]], version):
                layers.append(count)
                break
        else:
            at = len(shared)
            alike.append(at)
            shared.append(row)
        of_row.append(at)
    return Split(min(layers), shared, of_row) if layers else None


def transformer_layers(network: PreTrainedModel) -> nn.ModuleList | None:
    """The layers of a network, in order; ``None`` if they cannot be identified among its parts."""
    count = network.config.get_text_config().num_hidden_layers
    lists = [part for part in network.modules() if isinstance(part, nn.ModuleList)]
    found = [part for part in lists if len(part) == count]
    return found[0] if len(found) == 1 else None


@contextmanager
def repeated_before(
    layers: nn.ModuleList, first: int, rows: Tensor, begin: Callable[[], None]
) -> Iterator[None]:
    """A context in which a forward pass repeats its rows before one of its layers.

    Args:
        layers: the layers of the network.
        first: the layer that gets the repeated rows, as do all layers after it.
        rows: for each row of the result, the row of the input that it repeats. There are fewer
            rows in the input.
        begin: called before the layer ``first``.
    """
    count = int(rows.max()) + 1

    def repeated(value: Any) -> Any:
        if isinstance(value, tuple):  # such as the sines and cosines of positions
            return tuple(repeated(part) for part in value)
        # A tensor with one dimension holds a value for each token, not for each row.
        if isinstance(value, Tensor) and value.dim() > 1 and len(value) == count:
            return value.index_select(0, rows)
        return value

    def before(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if layer is layers[first]:
            begin()
        return repeated(args), {name: repeated(value) for name, value in kwargs.items()}

    with ExitStack() as hooks:
        for layer in layers[first:]:
            hooks.callback(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
        yield
