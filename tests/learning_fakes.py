"""Stand-ins that the tests of learning share: a model of a few hundred weights, and traces."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.trace import Call, StepRecord, Trace

VOCABULARY = 64


class TinyModule(nn.Module):
    """Next-token logits from the mean of all tokens so far, plus a low-rank adapter."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, width, generator=draw))
        self.out = nn.Parameter(torch.randn(2 * width, VOCABULARY, generator=draw) / 4)
        self.low = nn.ParameterDict()
        self.high = nn.ParameterDict()
        self.active: str | None = None
        self.requires_grad_(False)

    def forward(
        self, input_ids: Tensor, use_cache: bool = False, logits_to_keep: int = 0
    ) -> SimpleNamespace:
        tokens = self.embedding[input_ids]
        so_far = tokens.cumsum(1) / torch.arange(1, input_ids.shape[1] + 1)[:, None]
        hidden = torch.cat([tokens, so_far], -1)[:, -logits_to_keep:]
        logits = hidden @ self.out
        if self.active is not None:
            logits = logits + hidden @ self.low[self.active] @ self.high[self.active]
        return SimpleNamespace(logits=logits)


class TinyModel:
    """A :class:`swarm_ui.optim.protocols.Trainable` without transformers."""

    pad_id = 0

    def __init__(self, adapters: Sequence[str] = ()) -> None:
        self.network = TinyModule().eval()
        self.versions: dict[str, int] = {}
        for name in adapters:
            self.add_adapter(name)

    @property
    def adapters(self) -> tuple[str, ...]:
        return tuple(self.versions)

    def add_adapter(
        self, name: str, *, rank: int = 4, alpha: int | None = None, copy_from: str | None = None
    ) -> None:
        draw = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        height, width = self.network.out.shape
        self.network.low[name] = nn.Parameter(torch.randn(height, rank, generator=draw) / 4)
        self.network.high[name] = nn.Parameter(torch.zeros(rank, width))
        self.versions[name] = 0
        if copy_from is not None:
            for ours, theirs in zip(
                self.adapter_parameters(name), self.adapter_parameters(copy_from), strict=True
            ):
                ours.data.copy_(theirs.data)

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        return [self.network.low[name], self.network.high[name]]

    @contextlib.contextmanager
    def activate(self, name: str) -> Iterator[None]:
        self.network.active = name
        self.network.train()
        try:
            yield
        finally:
            self.network.active = None
            self.network.eval()

    @contextlib.contextmanager
    def reference(self) -> Iterator[None]:
        before, self.network.active = self.network.active, None
        try:
            yield
        finally:
            self.network.active = before

    def encode(self, decision: Decision, action: Action) -> tuple[list[int], list[int]]:
        words = [decision.observation.goal, *(e.label for e in decision.observation.elements)]
        words += [heard.content for heard in decision.heard]
        prompt = [_id(w) for w in " ".join(words).split()]
        reply = [*map(_id, action.json().split(",")), 1]
        return prompt + reply, [0] * len(prompt) + [1] * len(reply)

    def bump(self, name: str) -> None:
        self.versions[name] += 1

    def save_adapters(self, folder: Path) -> None:
        for name in self.adapters:
            low, high = self.adapter_parameters(name)
            (folder / name).mkdir(parents=True, exist_ok=True)
            save_file(
                {"low": low.detach(), "high": high.detach()},
                folder / name / "weights.safetensors",
            )

        (folder / "versions.json").write_text(json.dumps(self.versions))

    def load_adapters(self, folder: Path) -> None:
        for name in self.adapters:
            weights = load_file(folder / name / "weights.safetensors")
            low, high = self.adapter_parameters(name)
            low.data.copy_(weights["low"])
            high.data.copy_(weights["high"])
        self.versions = json.loads((folder / "versions.json").read_text())


def _id(word: str) -> int:
    return 2 + zlib.crc32(word.encode()) % (VOCABULARY - 2)


def click(index: int, label: str = "") -> Action:
    return Action(action_type="click", index=index, target=label or None)


def screen(labels: Sequence[str] = ("Save", "Back", "Help"), goal: str = "save it") -> Observation:
    return Observation(
        goal=goal,
        elements=tuple(Element(index=i, role="button", text=t) for i, t in enumerate(labels)),
    )


def decided(
    matrix: Sequence[Sequence[Action | None]],
    *,
    orders: dict[str, tuple[int, ...]] | None = None,
    observation: Observation | None = None,
    run: str = "run",
    errors: dict[str, str] | None = None,
) -> Trace:
    """A trace with this action matrix ``[rounds, agents]``; everyone hears all earlier words."""
    agents = tuple(f"agent_{k}" for k in range(len(matrix[0])))
    messages: list[Message] = []
    calls: list[Call] = []
    for r, row in enumerate(matrix):
        for agent, action in zip(agents, row, strict=True):
            id = f"{agent}:{r}"
            text = "words" if action is None else action.json()
            error = "no JSON object in the reply" if action is None else None
            heard = tuple(m.id for m in messages)
            failed = (errors or {}).get(id)
            messages.append(
                Message(
                    id=id, sender=agent, round=r, content=text, action=action,
                    error=failed or error,
                )
            )  # fmt: skip
            calls.append(
                Call(
                    message=id, node=agent, round=r, heard=heard, reply=text,
                    order=(orders or {}).get(agent), error=failed,
                )
            )  # fmt: skip
    return Trace(
        run=run,
        seed=0,
        observation=observation or screen(),
        agents=agents,
        rounds=len(matrix),
        messages=tuple(messages),
        calls=tuple(calls),
        action=matrix[-1][0],
    )


def graded(trace: Trace, credit: Sequence[Sequence[float | None]]) -> StepRecord:
    return StepRecord(trace=trace, executed=trace.action, credit=tuple(map(tuple, credit)))
