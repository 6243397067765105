"""Training killed with ``kill -9`` at random moments ends with the weights of a quiet run."""

from __future__ import annotations

import json
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from learning_fakes import TinyModel
from learning_run import CONFIG, run, run_until
from trainer_child import Child, config, train

from swarm_ui.optim.edges.distribution import EdgeDistribution

LONGEST = 0.4
"""Seconds; a few iterations."""


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first update loads half of torch: here, and not in every child."""
    run(TinyModel(), tmp_path_factory.mktemp("warm"), config=replace(config(0), iterations=1))


def trained_under_fire(seed: int, folder: Path, rng: random.Random) -> int:
    """Train one team, killing it again and again; returns how often."""
    kills, longest, reached = 0, LONGEST, ""
    while True:
        child = Child(lambda: train(seed, folder), folder / "stderr.txt")
        time.sleep(rng.uniform(0, longest))
        ended = child.kill()
        if (folder / "adapters").exists():
            return kills
        assert ended == -signal.SIGKILL, (folder / "stderr.txt").read_text()[-2000:]
        kills += 1
        saved = (folder / "run" / "checkpoints").glob("iteration-*")
        newest = max((path.name for path in saved), default="")
        if newest == reached:  # the machine is busy: leave the next one more time
            longest *= 2
        reached = newest


@pytest.mark.parametrize(
    "times",
    [pytest.param(6, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.soak)],
)
def test_a_killed_run_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path: Path, times: int
) -> None:
    rng, kills, seed = random.Random(0), 0, 0
    while kills < times:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        kills += trained_under_fire(seed, folder, rng)
        assert_as_if_quiet(folder, tmp_path / f"quiet-{seed}", seed)


def weights(model: TinyModel) -> list[torch.Tensor]:
    return [p.detach() for name in model.adapters for p in model.adapter_parameters(name)]


def test_killed_twice_and_resumed_equals_never_killed(tmp_path: Path) -> None:
    whole, settings = TinyModel(), CONFIG
    expected = run(whole, tmp_path / "whole", config=settings)

    folder = tmp_path / "killed"
    assert Child(lambda: run_until(folder, "update", 1, settings)).wait() == -signal.SIGKILL
    assert [p.name for p in (folder / "checkpoints").iterdir()] == ["iteration-0001"]
    assert Child(lambda: run_until(folder, "rename", 2, settings)).wait() == -signal.SIGKILL
    parts = sorted(p.name for p in (folder / "checkpoints").iterdir())
    assert parts[0].startswith(".iteration-0002-")
    assert parts[1:] == ["iteration-0001"]

    model = TinyModel()
    result = run(model, folder, resume=True, config=settings)
    assert model.adapters == whole.adapters == ("agent_0", "agent_1", "agent_2")
    assert model.versions == whole.versions
    for ours, theirs in zip(weights(model), weights(whole), strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(result.edges.logits, expected.edges.logits)
    assert torch.equal(result.edges.scores, expected.edges.scores)
    assert [m["success"] for m in result.history] == [m["success"] for m in expected.history]

    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [0, 1, 2]
    left = sorted(p.name for p in (folder / "checkpoints").iterdir())
    assert left == ["iteration-0003"]


def assert_as_if_quiet(folder: Path, beside: Path, seed: int) -> None:
    """Adapters, edges and metrics are those of a run nobody disturbed."""
    quiet, ours = TinyModel(), TinyModel()
    expected = run(quiet, beside, config=config(seed), warn=lambda _: None)
    ours.load_adapters(folder / "adapters")
    assert ours.versions == quiet.versions
    for name in quiet.adapters:
        pairs = zip(ours.adapter_parameters(name), quiet.adapter_parameters(name), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), (seed, name)
    file = folder / "run" / "checkpoints" / "iteration-0012" / "edges.safetensors"
    edges = EdgeDistribution.load(file)
    assert torch.equal(edges.logits, expected.edges.logits)
    assert len((folder / "run" / "metrics.jsonl").read_text().splitlines()) == 12


@pytest.mark.slow
def test_a_full_disk_ends_it_and_the_same_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    # state.json, with the history in it, grows with every iteration: some checkpoints fit.
    child = Child(lambda: train(7, tmp_path, largest=16_000), tmp_path / "stderr.txt")
    assert child.wait() == 1
    said = (tmp_path / "stderr.txt").read_text().strip().splitlines()[-1]
    assert "ConfigError: cannot write the checkpoint of iteration" in said
    assert "File too large" in said
    whole = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("iteration-*"))
    assert len(whole) == 1, "the last one that did fit is kept"
    assert not (tmp_path / "adapters").exists()
    assert Child(lambda: train(7, tmp_path)).wait() == 0
    assert_as_if_quiet(tmp_path, tmp_path / "quiet", 7)
