"""A run killed at any point goes on from its last complete iteration, to the same weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import TinyModel
from learning_run import CONFIG, run

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.files import append_line
from swarm_ui.optim.config import UpdateConfig

LESS = replace(
    CONFIG,
    shared_steps=4,
    episodes=8,
    update=UpdateConfig(method="dpo", steps=3, batch_size=8, lr=5e-2),
)
"""Iterations of a tenth of a second."""
SHORT = replace(
    CONFIG, shared_steps=2, episodes=4, update=UpdateConfig(method="dpo", steps=2, batch_size=4)
)
"""Iterations of a few hundredths of a second."""
ROOT = Path(__file__).resolve().parents[2]


def weights(model: TinyModel) -> list[torch.Tensor]:
    return [p.detach() for name in model.adapters for p in model.adapter_parameters(name)]


def test_a_loss_that_is_no_number_loses_nothing_and_the_run_can_be_taken_up(tmp_path: Path) -> None:
    class Breaks(TinyModel):
        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            sums, tokens = super().forward_logprobs(*batch)
            at_work = self.module.active if self.module.training else None
            broken = at_work == "agent_1" and self.versions["agent_1"] == 2
            return (sums * float("nan") if broken else sums), tokens

    whole = TinyModel()
    run(whole, tmp_path / "whole", config=LESS)
    folder = tmp_path / "broken"
    with pytest.raises(LearningError, match="adapter 'agent_1', step 1 of 3"):
        run(Breaks(), folder, config=LESS)
    assert [p.name[-4:] for p in sorted((folder / "checkpoints").iterdir())] == ["0002"]
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    model = TinyModel()
    run(model, folder, resume=True, config=LESS)
    assert model.versions == whole.versions
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(whole), strict=True))


def test_a_metrics_file_that_cannot_be_written_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    whole, model = TinyModel(), TinyModel()
    run(whole, tmp_path / "whole", config=LESS)
    folder = tmp_path / "run"
    (folder / "metrics.jsonl").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"checkpoint of iteration 1.*metrics\.jsonl"):
        run(TinyModel(), folder, config=LESS)
    (folder / "metrics.jsonl").rmdir()
    run(model, folder, resume=True, config=LESS)
    assert all(torch.equal(a, b) for a, b in zip(weights(model), weights(whole), strict=True))
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [0, 1, 2]


def test_memory_is_in_the_metrics(tmp_path: Path) -> None:
    run(TinyModel(), tmp_path, config=LESS)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    peaks = [json.loads(line)["peak_memory_mb"] for line in lines]
    assert 10 < peaks[0] <= peaks[1] <= peaks[2] < 100_000


def test_a_finished_run_resumed_does_nothing(tmp_path: Path) -> None:
    model = TinyModel()
    run(model, tmp_path, config=LESS)
    before = [w.clone() for w in weights(model)]
    other = TinyModel()
    assert len(run(other, tmp_path, resume=True, config=LESS).history) == 3
    assert all(torch.equal(a, b) for a, b in zip(before, weights(other), strict=True))


def test_a_run_is_neither_overwritten_nor_mixed_with_another(tmp_path: Path) -> None:
    run(TinyModel(), tmp_path, config=LESS)
    with pytest.raises(ConfigError, match="resume it"):
        run(TinyModel(), tmp_path, config=LESS)
    other = replace(LESS, guide=0.1)
    with pytest.raises(ConfigError, match=r"guide: None then, 0\.1 now"):
        run(TinyModel(), tmp_path, resume=True, config=other)


def test_resuming_nothing_starts_at_the_beginning(tmp_path: Path) -> None:
    assert len(run(TinyModel(), tmp_path, resume=True, config=LESS).history) == 3


def test_lines_of_others_in_the_metrics_stay(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"kind": "evaluation", "success": 0.5}\n')
    run(TinyModel(), tmp_path, config=LESS)
    with metrics.open("a") as file:
        file.write('{"kind": "iteration", "iteration": 99}\n{"torn')
    run(TinyModel(), tmp_path, resume=True, config=LESS)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line.get("iteration") for line in lines] == [None, 0, 1, 2]


class Stop(Exception):
    """Ends a run in the middle of an iteration."""


@pytest.mark.parametrize(
    "stopped", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)]
)
def test_lines_of_an_iteration_that_did_not_end_are_gone(tmp_path: Path, stopped: int) -> None:
    def logging(path: Path, last: int = 9) -> Any:
        def log(iteration: int, episodes: object) -> None:
            line = {"kind": "rollouts", "iteration": iteration}
            append_line(path / "metrics.jsonl", json.dumps(line).encode())
            if iteration == last:
                raise Stop

        return log

    def kinds(path: Path) -> list[tuple[str, int]]:
        lines = map(json.loads, (path / "metrics.jsonl").read_text().splitlines())
        return [(line["kind"], line["iteration"]) for line in lines]

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for path in (whole, broken):
        path.mkdir()
    run(TinyModel(), whole, on_episodes=logging(whole), config=SHORT)
    with pytest.raises(Stop):
        run(TinyModel(), broken, on_episodes=logging(broken, stopped), config=SHORT)
    run(TinyModel(), broken, on_episodes=logging(broken), config=SHORT, resume=True)
    assert kinds(broken) == kinds(whole)
    assert len(kinds(whole)) == 6
