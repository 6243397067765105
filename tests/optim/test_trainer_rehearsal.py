"""Rehearsal: what is repeated beside the new, how much of it, and that less is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from learning_fakes import TinyModel, click, screen

from swarm_ui.model import Decision
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.examples import reply_logprobs
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.optim.update import update_team

CONFIG = TeamConfig(
    update=UpdateConfig(method="rft", steps=60, batch_size=8, lr=5e-2),
)


def lessons(kind: str, target: str, count: int = 24) -> list[PreferencePair]:
    return [
        PreferencePair(
            node="agent_0", decision=Decision(observation=screen(["x"], goal=f"{kind} {k}")),
            chosen=click(0, target), rejected=None,
        )
        for k in range(count)
    ]  # fmt: skip


def likelihood(model: TinyModel, adapter: str, known: Sequence[PreferencePair]) -> float:
    model.module.active = adapter
    with torch.no_grad():
        rows = [model.encode(p.decision, p.chosen.json()) for p in known]
        found = float(reply_logprobs(model, [(adapter, row) for row in rows]).mean())
    model.module.active = None
    return found


def test_less_is_forgotten() -> None:
    old, new = lessons("old old old", "Save"), lessons("new new new", "Help")

    def after(again: bool) -> tuple[float, float]:
        model = TinyModel(["agent_0"])
        names = {"agent_0": "agent_0"}
        update_team(model, old, names, CONFIG, 0)
        repeat = (lambda n, rng: rng.choices(old, k=n)) if again else None
        update_team(model, new, names, CONFIG, 1, rehearse=repeat)
        return likelihood(model, "agent_0", old), likelihood(model, "agent_0", new)

    forgetful, fresh = after(False)
    kept, learned = after(True)
    assert kept > forgetful + 1.0
    assert learned > fresh - 1.0
