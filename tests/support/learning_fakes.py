"""Stand-ins that the tests of learning share: a model of a few hundred weights, a world
of four buttons, and traces."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from swarm_ui.action import Action, parse_action
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environment import Step
from swarm_ui.errors import EnvironmentFault
from swarm_ui.message import Message
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.node import derive
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.optim.credit.critic import ScriptedCritic
from swarm_ui.optim.preferences import screen_key
from swarm_ui.optim.update import UpdateStats, fit, prepare
from swarm_ui.trace.records import Call, StepRecord, Trace

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

    def forward(self, ids: Tensor) -> Tensor:
        tokens = self.embedding[ids]
        so_far = tokens.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None]
        hidden = torch.cat([tokens, so_far], -1)
        logits = hidden @ self.out
        if self.active is not None:
            logits = logits + hidden @ self.low[self.active] @ self.high[self.active]
        return logits


def token_logprobs(logits: Tensor, ids: Tensor, replies: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of each token of the reply, and its number of tokens."""
    taken = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    mask = replies[:, 1:].to(taken.dtype)
    return taken * mask, mask.sum(1)


def precise(adapters: Sequence[str] = ()) -> TinyModel:
    """A model in float64.

    AdamW divides a gradient by its size: where the gradient is almost zero, a weight in float32
    moves by the rounding of the sum, which each processor orders in its own way.
    """
    model = TinyModel()
    model.module.double()
    for name in adapters:
        model.add_adapter(name)
    return model


class TinyModel:
    """A :class:`swarm_ui.optim.examples.Trainable` without transformers."""

    pad_id = 0

    def __init__(self, adapters: Sequence[str] = ()) -> None:
        self.module = TinyModule().eval()
        self.versions: dict[str, int] = {}
        self.training: set[str] = set()
        for name in adapters:
            self.add_adapter(name)

    @property
    def adapters(self) -> tuple[str, ...]:
        return tuple(self.versions)

    def add_adapter(
        self,
        name: str,
        rank: int = 4,
        alpha: float | None = None,
    ) -> None:
        draw = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        (height, width), kind = self.module.out.shape, self.module.out.dtype
        self.module.low[name] = nn.Parameter(torch.randn(height, rank, generator=draw).to(kind) / 4)
        self.module.high[name] = nn.Parameter(torch.zeros(rank, width, dtype=kind))
        self.versions[name] = 0

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        return [self.module.low[name], self.module.high[name]]

    @contextlib.contextmanager
    def activate(self, name: str) -> Iterator[None]:
        before, outer = self.module.active, name in self.training
        start = [p.detach().clone() for p in self.adapter_parameters(name)]
        self.module.active = name
        self.training.add(name)
        self.module.train()
        try:
            yield
        finally:
            self.module.active = before
            self.module.eval()
            if not outer:
                self.training.discard(name)
                now = self.adapter_parameters(name)
                same = all(torch.equal(a, b) for a, b in zip(start, now, strict=True))
                self.versions[name] += not same

    def encode(
        self, decision: Decision, reply: str, *, adapter: str | None = None
    ) -> tuple[list[int], list[int]]:
        action = parse_action(reply)
        assert isinstance(action, Action)
        return _prompt_ids(decision), _reply_ids(action)

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        return token_logprobs(self.module(ids), ids, reply_mask)

    def logprobs(
        self, adapter: str | None, prompt: list[int], replies: list[list[int]]
    ) -> NDArray[np.float32]:
        """As :meth:`forward_logprobs`, of replies of one length; five times as fast in numpy."""
        ids, start = np.array([prompt + reply for reply in replies]), len(prompt)
        tokens = self.module.embedding.numpy()[ids]
        so_far = tokens.cumsum(1) / np.arange(1, ids.shape[1] + 1, dtype=np.float32)[:, None]
        hidden = np.concatenate([tokens, so_far], -1)[:, start - 1 : -1]
        logits = hidden @ self.module.out.numpy()
        if adapter is not None:
            low, high = (p.detach().numpy() for p in self.adapter_parameters(adapter))
            logits += hidden @ low @ high
        taken = np.take_along_axis(logits, ids[:, start:, None], -1)[..., 0]
        whole: NDArray[np.float32] = (taken - np.log(np.exp(logits).sum(-1))).sum(1)
        return whole

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
        versions = json.loads((folder / "versions.json").read_text())
        for name, version in versions.items():
            if name not in self.versions:
                self.add_adapter(name)
            weights = load_file(folder / name / "weights.safetensors")
            low, high = self.adapter_parameters(name)
            low.data.copy_(weights["low"])
            high.data.copy_(weights["high"])
            self.versions[name] = version


class TinyAgent:
    """Asks a :class:`TinyModel` which of the screen's elements to click."""

    name = "tiny"

    def __init__(self, model: TinyModel) -> None:
        self.model = self.learner = model

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return [self._answer(request) for request in requests]

    async def close(self) -> None: ...

    def _answer(self, request: Request) -> Completion:
        assert request.decision is not None
        shown = request.decision.observation.elements
        offers = [click(e.index, e.label) for e in shown]
        prompt = _prompt_ids(request.decision)
        logprobs = self.model.logprobs(request.adapter, prompt, [_reply_ids(o) for o in offers])
        scaled = np.exp((logprobs - logprobs.max()) / max(request.temperature, 1e-3))
        weights = (scaled / scaled.sum()).tolist()
        (chosen,) = random.Random(request.seed).choices(offers, weights)
        version = self.model.versions.get(request.adapter or "")
        return Completion(text=chosen.json(), prompt="p", adapter=f"{request.adapter}@{version}")


def fitted(
    model: Any, adapter: str, examples: Any, config: UpdateConfig, seed: int = 0
) -> UpdateStats:
    """An update of one adapter."""
    settings = config.filled(model)
    return fit(model, prepare(model, adapter, examples, settings, random.Random(seed)))


BUTTONS = ("Save", "Back", "Help", "Open")


class ButtonWorld:
    """Press the button of the goal, twice. Seeds in ``broken`` end in a fault."""

    name = "buttons"
    tasks = ("press",)

    def __init__(self, broken: frozenset[int] = frozenset()) -> None:
        self.broken = broken
        self.seed, self.pressed, self.taken = 0, 0, 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.seed, self.pressed, self.taken = seed, 0, 0
        return self._look()

    async def step(self, action: Action) -> Step:
        if self.seed in self.broken:
            raise EnvironmentFault("the screen went black")
        self.pressed += int(self.grade(action))
        self.taken += 1
        solved = self.pressed == 2
        return Step(
            observation=self._look(),
            reward=float(solved),
            terminated=solved,
            truncated=self.taken >= 4 and not solved,
        )

    async def close(self) -> None: ...

    def snapshot(self) -> tuple[int, int, int]:
        return self.seed, self.pressed, self.taken

    def restore(self, state: object) -> Observation:
        assert isinstance(state, tuple)
        self.seed, self.pressed, self.taken = state
        return self._look()

    def expert(self) -> Action:
        labels = [e.text for e in self._look().elements]
        return click(labels.index(self._wanted()), self._wanted())

    def grade(self, action: Action) -> float:
        element = self._look().element(action.index)
        return float(element is not None and element.text == self._wanted())

    def _wanted(self) -> str:
        return BUTTONS[self.seed % len(BUTTONS)]

    def _look(self) -> Observation:
        labels = list(BUTTONS)
        random.Random(self.seed).shuffle(labels)
        return screen(labels, goal=f"{self._wanted()} " * 4 + f"{self.pressed} {self.taken}")


def button_team(model: TinyModel, agents: int = 3) -> CollabGraph:
    """Clones of the tiny agent, each with an adapter of its own name, and a vote."""
    names = [f"agent_{k}" for k in range(agents)]
    return CollabGraph.collaborative(
        agents, 2, model=TinyAgent(model), edges=[], adapters=names, temperature=1.0
    )


def _prompt_ids(decision: Decision) -> list[int]:
    words = [decision.observation.goal, *(e.label for e in decision.observation.elements)]
    words += [heard.content for heard in decision.heard]
    return [_id(w) for w in " ".join(words).split()]


def _reply_ids(action: Action) -> list[int]:
    return [_id(action.action_type), _id(action.target or str(action.index)), 1]


@functools.cache
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
    said: dict[str, str] | None = None,
    prompt_format: str = "json",
) -> Trace:
    """A trace with this action matrix ``[rounds, agents]``; everyone hears all earlier words.
    ``said``: the texts of some messages, by id; by default the action as JSON."""
    agents = tuple(f"agent_{k}" for k in range(len(matrix[0])))
    calls: list[Call] = []
    for r, row in enumerate(matrix):
        for agent, action in zip(agents, row, strict=True):
            id = f"{agent}:{r}"
            text = "words" if action is None else action.json()
            text = (said or {}).get(id, text)
            error = "no JSON object in the reply" if action is None else None
            heard = tuple(call.id for call in calls)
            failed = (errors or {}).get(id)
            message = Message(
                id=id, sender=agent, round=r, content=text, action=action,
                error=failed or error, prompt_format=prompt_format,
            )  # fmt: skip
            order = (orders or {}).get(agent)
            calls.append(Call(message=message, heard=heard, order=order, error=failed))
    return Trace(
        run=run,
        seed=0,
        observation=observation or screen(),
        agents=agents,
        rounds=len(matrix),
        calls=tuple(calls),
        action=matrix[-1][0],
    )


def graded(trace: Trace, credit: Sequence[Sequence[float | None]]) -> StepRecord:
    return StepRecord(trace=trace, executed=trace.action, credit=tuple(map(tuple, credit)))


class Contrary(ScriptedCritic):
    """A critic that finds right what is wrong, or errs in a share of its grades. A repeated action
    on an equal screen gets the same grade."""

    def __init__(self, make_environment: Callable[[], Any], share: float = 1.0) -> None:
        super().__init__(make_environment)
        self.share = share

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        grades = await super().grade(observation, actions, state)
        screen = hashlib.blake2b(screen_key(observation), digest_size=16).hexdigest()
        draws = [derive(0, screen, repr(action.key)) / 2**53 for action in actions]
        return [
            1.0 - grade if grade is not None and draw < self.share else grade
            for grade, draw in zip(grades, draws, strict=True)
        ]
