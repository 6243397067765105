"""Small models in this process, with adapters that differ, and questions for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import torch

from demos.base_agent.stream import Mix, Stream
from swarm_ui.model import ChatModel, Completion, Request
from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel


def untrained(seed: int = 0) -> LocalModel:
    return LocalModel.untrained(ScreenTokenizer(), width=32, layers=2, heads=2, seed=seed)


def disturb(model: InProcessModel, name: str, seed: int, size: float = 0.3) -> None:  # type: ignore[type-arg]
    """Change an adapter's weights, as a training step would, and publish them."""
    noise = torch.Generator().manual_seed(seed)
    with model.activate(name), torch.no_grad():
        for weight in model.adapter_parameters(name):
            weight += size * torch.randn(weight.shape, generator=noise)
    newest(model, name)


def with_adapters(count: int = 3) -> LocalModel:
    """A model whose adapters differ from the base and from each other."""
    model = untrained()
    for i in range(count):
        model.add_adapter(f"agent_{i}", rank=4, alpha=8)
        with torch.no_grad():
            noise = torch.Generator().manual_seed(5 + i)
            for weight in model.adapter_parameters(f"agent_{i}"):
                weight.copy_(0.3 * torch.randn(weight.shape, generator=noise))
        newest(model, f"agent_{i}")
    return model


def newest(model: InProcessModel, name: str) -> str:  # type: ignore[type-arg]
    """The version of an adapter's live weights, as the next run gets it."""
    version = model.lease(name)
    model.release(version)
    return version


def requests(count: int) -> list[Request]:
    """Screens of many sizes."""
    stream = Stream(3, Mix())
    return [Request(decision=stream.draw(questions=0.0).decision, seed=i) for i in range(count)]


def asking(adapter: str | None, asked: Sequence[Request]) -> list[Request]:
    """The same questions to one adapter."""
    return [msgspec.structs.replace(request, adapter=adapter) for request in asked]


async def at_once(model: ChatModel, asked: Sequence[Request]) -> list[Completion]:
    """Each request from a coroutine of its own, as agents ask."""
    return [c for [c] in await asyncio.gather(*(model.generate([r]) for r in asked))]


def answers(model: ChatModel, asked: Sequence[Request]) -> list[Completion]:
    """As :func:`at_once`, from synchronous code; nothing is reused from an earlier call."""
    if isinstance(model, LocalModel):
        model.forget_prompts()
    return asyncio.run(at_once(model, asked))


def alike(one: Sequence[Completion], other: Sequence[Completion]) -> bool:
    """Whether the same weights gave both: texts, and log-probabilities up to rounding."""
    return len(one) == len(other) and all(
        a.text == b.text and abs((a.logprob or 0.0) - (b.logprob or 0.0)) < 1e-3
        for a, b in zip(one, other, strict=True)
    )
