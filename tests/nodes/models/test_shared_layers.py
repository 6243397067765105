"""Agents whose adapters differ in the upper layers only compute the lower ones once."""

from __future__ import annotations

import msgspec
import pytest
import torch
from local_models import answers
from test_shared_prefixes import copies, same, screen
from tiny_causal import network, tokenizer
from torch import Tensor, nn

from swarm_ui.errors import ConfigError
from swarm_ui.message import Heard
from swarm_ui.model import Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.decoding.layer_sharing import (
    Split,
    split_of,
    transformer_layers,
)

AGENTS = tuple(f"agent_{k}" for k in range(4))


def change_layer(model: CausalModel, layer: int) -> None:
    """Give each agent weights of its own in one layer."""
    for k, name in enumerate(AGENTS):
        noise = torch.Generator().manual_seed(k)
        with model.activate(name), torch.no_grad():
            for weight in model.adapter_parameters(name, [layer]):
                weight += 0.2 * torch.randn(weight.shape, generator=noise)


def counted(model: CausalModel) -> list[int]:
    """A list to which each layer adds the tokens that it computes."""
    layers = transformer_layers(model.network)
    assert layers is not None
    tokens = [0] * len(layers)

    def count(number: int) -> None:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: object) -> None:
            tokens[number] += inputs[0].shape[:2].numel()

        layers[number].register_forward_hook(hook)

    for number in range(len(layers)):
        count(number)
    return tokens


def questions(number: int) -> list[Request]:
    """All agents see one of two screens; in later rounds, they have heard something."""
    heard = tuple(
        Heard(sender="agent_0", round=k, content="abc", action=None) for k in range(number)
    )
    return [
        Request(
            decision=Decision(observation=screen(which), heard=heard),
            adapter=name,
            temperature=0.0 if k % 2 else 1.0,
            seed=k,
            max_tokens=40,
        )
        for which in (3, 14)
        for k, name in enumerate((*AGENTS, None))
    ]


@pytest.mark.parametrize("prompts", ["new", "with known prefixes"])
def test_lower_layers_are_computed_once_and_replies_are_the_same(prompts: str) -> None:
    whole, shared = copies(prefix_bytes=0), copies()
    for model in (whole, shared):
        change_layer(model, 1)
    known = prompts != "new"
    if known:
        answers(shared, questions(0))
    asked = questions(int(known))
    tokens, all_tokens = counted(shared), counted(whole)
    done, expected = answers(shared, asked), answers(whole, asked)
    same(expected, done)
    assert len({reply.text for reply in done}) > 2
    # Per screen, one row for the four agents, and one for the base model, whose layers all differ.
    saved = tokens[1] - tokens[0]
    prompt = max(reply.usage.prompt_tokens for reply in done)
    assert saved > (0 if known else 4 * prompt)
    assert all_tokens[0] == all_tokens[1] >= tokens[1]


def test_known_prefixes_of_some_agents_only() -> None:
    whole, shared = copies(prefix_bytes=0), copies()
    for model in (whole, shared):
        change_layer(model, 1)
    asked = questions(0)
    answers(shared, asked[1:2])
    same(answers(whole, asked), answers(shared, asked))
    same(answers(whole, questions(1)), answers(shared, questions(1)))


def test_agents_that_differ_in_the_lowest_layer_share_nothing() -> None:
    shared = copies()
    change_layer(shared, 0)
    tokens = counted(shared)
    answers(shared, questions(0)[:4])
    assert tokens[0] == tokens[1] > 0


def test_weights_that_change_in_place_are_noticed() -> None:
    whole, shared = copies(prefix_bytes=0), copies()
    asked = [msgspec.structs.replace(each, temperature=0.0) for each in questions(0)]
    for layer in (1, 0):
        for model in (whole, shared):
            change_layer(model, layer)
        same(answers(whole, asked), answers(shared, asked))


def test_a_split_names_the_rows_that_stand_for_others() -> None:
    equal = {"ab": 5, "ac": 0, "bc": 0, "ad": 7}

    def shared_layers(one: str | None, other: str | None) -> int:
        return equal["".join(sorted((one or "", other or "")))]

    prompts = [[1, 2], [3], [1, 2], [3], [4], [1, 2]]
    split = split_of(prompts, ["a", "a", "b", "d", "a", "c"], shared_layers)
    assert split == Split(layer=5, shared=[0, 1, 4, 5], of_row=[0, 1, 0, 1, 2, 3])
    assert split_of([[1], [2]], ["a", "b"], shared_layers) is None
    assert split_of([[1], [1]], ["a", "c"], shared_layers) is None


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral"])
def test_the_layers_of_an_architecture_are_found(kind: str) -> None:
    found = transformer_layers(network(kind, len(tokenizer())))
    assert found is not None
    assert len(found) == 2


def test_weights_of_some_layers() -> None:
    model = copies()
    whole = model.adapter_parameters("agent_0")
    lower, upper = (model.adapter_parameters("agent_0", [k]) for k in (0, 1))
    assert [id(p) for p in (*lower, *upper)] == [id(p) for p in whole]
    with pytest.raises(ConfigError, match="numbers from 0 to 1 of this network, got"):
        model.adapter_parameters("agent_0", [2])
