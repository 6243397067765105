"""Updates by several processes give the weights of one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from learning_fakes import TinyModel, click, precise, screen
from process_group import in_processes
from safetensors.torch import load_file, save_file
from torch import Tensor

from swarm_ui import Decision, LearningError
from swarm_ui.optim import PreferencePair, TeamConfig, UpdateConfig
from swarm_ui.optim.distributed import Processes
from swarm_ui.optim.update import UpdateStats, follow, update_team

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]
AGENTS = {f"agent_{k}": f"agent_{k}" for k in range(3)}
CONFIG = TeamConfig(
    seed=4, rank=4, update=UpdateConfig(method="dpo", steps=4, batch_size=5, lr=5e-2)
)


def decision(k: int) -> Decision:
    """Prompts of very different lengths."""
    return Decision(observation=screen(["x"], goal=f"goal-{k % 6} " * (1 + 7 * k % 23)))


def examples(method: str, count: int = 13) -> Any:
    """Of different weights; every third pair has no rejected side."""
    if method == "gspo":
        return [
            PreferencePair(node=f"agent_{k % 3}", decision=decision(k),
                        chosen=click(k % 6, WORDS[k % 6]), advantage=(-1.0) ** k * (1 + k % 3))
            for k in range(count)
        ]  # fmt: skip
    return [
        PreferencePair(
            node=f"agent_{k % 3}", decision=decision(k), chosen=click(k % 6, WORDS[k % 6]),
            rejected=None if k % 3 == 0 else click((k + 1) % 6, WORDS[(k + 1) % 6]),
            weight=0.25 * (1 + k % 4),
        )
        for k in range(count)
    ]  # fmt: skip


def weights(model: TinyModel) -> dict[str, Tensor]:
    return {
        f"{name}.{k}": p.detach().clone()
        for name in model.adapters
        for k, p in enumerate(model.adapter_parameters(name))
    }


def distance(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    assert a.keys() == b.keys()
    return max((a[key] - b[key]).abs().max().item() for key in a)


def update(
    model: TinyModel, config: TeamConfig, group: Processes | None = None, iteration: int = 0
) -> list[UpdateStats]:
    given = examples(config.update.method)
    return update_team(model, given, AGENTS, config, iteration, processes=group)


def together(folder: Path, config: TeamConfig, processes: int) -> list[UpdateStats]:
    """Two updates, of which the second continues the first."""

    def leading(group: Processes) -> None:
        model = precise(tuple(AGENTS))
        (folder / "stats.json").write_bytes(msgspec.json.encode(update(model, config, group)))
        (folder / "versions.json").write_bytes(msgspec.json.encode(model.versions))
        save_file(weights(model), folder / "once.safetensors")
        update(model, config, group, iteration=1)
        save_file(weights(model), folder / "twice.safetensors")
        group.end()

    def following(group: Processes) -> None:
        model = precise(tuple(AGENTS))
        model.adapter_parameters("agent_1")[0].data += 1.0  # the first one's weights are used
        follow(model, group)
        save_file(weights(model), folder / f"rank-{group.rank}.safetensors")

    in_processes([leading, *[following] * (processes - 1)], folder)
    ends = load_file(folder / "twice.safetensors")
    for rank in range(1, processes):
        assert distance(load_file(folder / f"rank-{rank}.safetensors"), ends) == 0.0
    return msgspec.json.decode((folder / "stats.json").read_bytes(), type=list[UpdateStats])


@pytest.mark.parametrize(
    ("method", "processes", "batch_size"),
    [
        ("dpo", 3, 5), ("gspo", 2, 5), ("dpo", 3, 1),  # unequal shares, and empty ones
        pytest.param("rft", 3, 4, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_several_processes_are_one(
    tmp_path: Path, method: Any, processes: int, batch_size: int
) -> None:
    own = replace(CONFIG.update, method=method, batch_size=batch_size, micro_batch_tokens=200)
    config = replace(CONFIG, update=own)
    model = precise(tuple(AGENTS))
    start, expected = weights(model), update(model, config)
    found = together(tmp_path, config, processes)
    once = load_file(tmp_path / "once.safetensors")
    assert distance(once, weights(model)) <= 1e-8 < 1e-2 < distance(start, weights(model))
    versions = msgspec.json.decode((tmp_path / "versions.json").read_bytes())
    assert versions == model.versions == dict.fromkeys(AGENTS, 1)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.adapter, ours.examples, ours.steps) == (theirs.adapter, theirs.examples, 4)
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-4)
    update(model, config, iteration=1)
    assert distance(load_file(tmp_path / "twice.safetensors"), weights(model)) <= 1e-7


def test_a_loss_that_is_no_number_ends_the_update_in_all_processes(tmp_path: Path) -> None:
    """Its error is that of the run; nobody waits for ever, and the next update is made."""

    class Breaks(TinyModel):
        broken = True

        def forward_logprobs(self, *given: Tensor) -> tuple[Tensor, Tensor]:
            sums, tokens = super().forward_logprobs(*given)
            if self.broken and sums.requires_grad:
                self.broken = False
                return sums * float("nan"), tokens
            return sums, tokens

    def leading(group: Processes) -> None:
        model = TinyModel(tuple(AGENTS))
        before = weights(model)
        with pytest.raises(LearningError, match=r"adapter 'agent_0', step 1"):
            update(model, CONFIG, group)
        assert distance(before, weights(model)) == 0.0
        assert update(model, CONFIG, group)[0].steps == 4
        group.end()

    in_processes([leading, lambda group: follow(Breaks(tuple(AGENTS)), group)], tmp_path)
