"""Versions with equal weights have equal numbers, and no number means two weights."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.nodes.models.transformers.adapters.equal_weights import EqualWeights
from swarm_ui.nodes.models.transformers.adapters.multi_lora import (
    AdapterWeights,
    LoraWeights,
    copied,
    equal,
)


def weights(kind: int) -> AdapterWeights:
    """Seven that differ in a value, a layer, the scale or the precision."""
    layer = LoraWeights(torch.ones(2, 3), torch.zeros(4, 2), 2.0)
    kinds: tuple[AdapterWeights, ...] = (
        {"a": layer},
        {"a": layer._replace(up=torch.ones(4, 2))},
        {"a": layer._replace(scale=1.0)},
        {"a": layer._replace(down=torch.ones(2, 3, dtype=torch.bfloat16))},
        {"b": layer},
        {"a": layer, "b": layer},
        {"a": LoraWeights(torch.ones(1, 3), torch.zeros(4, 1), 2.0)},
    )
    return copied(kinds[kind])


def test_only_adapters_that_add_the_same_are_equal() -> None:
    for one in range(7):
        for other in range(7):
            assert equal(weights(one), weights(other)) == (one == other)


steps = st.lists(
    st.tuples(
        st.sampled_from("pqrs"), st.integers(0, 6), st.sampled_from(["set", "drop", "change"])
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_numbers_are_equal_exactly_where_weights_are(
    done: list[tuple[str, int, str]],
) -> None:
    known, memory = EqualWeights(), dict[str, AdapterWeights]()
    meant, version = dict[int, AdapterWeights](), 0
    for name, kind, what in done:
        current = [v for v in memory if v[0] == name]
        if what == "change" and current:
            memory[current[0]] = weights(kind)
            known.forget()
        else:
            for old in current:
                del memory[old]
            if what == "set":
                version += 1
                memory[f"{name}@{version}"] = weights(kind)
        numbers = known.numbered(memory, memory)
        for one in memory:
            assert equal(meant.setdefault(numbers[one], memory[one]), memory[one])
            for other in memory:
                assert (numbers[one] == numbers[other]) == equal(memory[one], memory[other])
