"""Training killed with ``kill -9`` at random moments ends with the weights of a quiet run."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from kill_children import children, say
from learning_fakes import TinyModel
from learning_run import run
from trainer_child import config

from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.files import load_edges

LONGEST = 0.4
"""Seconds; a few iterations."""


@pytest.fixture(scope="module")
def stderr_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the children wrote to their standard error."""
    return tmp_path_factory.mktemp("children") / "stderr.txt"


@pytest.fixture(scope="module")
def forking(stderr_file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that trains in forked children, which can be killed."""
    with (
        stderr_file.open("w") as stderr,
        children("support/trainer_child.py", stderr=stderr) as process,
    ):
        yield process


def trained_under_fire(
    process: subprocess.Popen[str], seed: int, folder: Path, rng: random.Random
) -> int:
    """Train one team, killing it again and again; returns how often."""
    kills = 0
    while True:
        assert say(process, "run", seed, folder / "run", folder / "adapters", 0) == "started"
        time.sleep(rng.uniform(0, LONGEST))
        ended = int(say(process, "kill"))
        if (folder / "adapters").exists():
            return kills
        assert ended == -signal.SIGKILL
        kills += 1


@pytest.mark.parametrize("times", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_a_killed_run_ends_with_the_weights_of_an_uninterrupted_one(
    forking: subprocess.Popen[str], tmp_path: Path, times: int
) -> None:
    rng, kills, seed = random.Random(0), 0, 0
    while kills < times:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        kills += trained_under_fire(forking, seed, folder, rng)
        assert_as_if_quiet(folder, tmp_path / f"quiet-{seed}", seed)


def assert_as_if_quiet(folder: Path, beside: Path, seed: int) -> None:
    """Adapters, edges and metrics are those of a run nobody disturbed."""
    quiet, ours = TinyModel(), TinyModel()
    expected = run(quiet, beside, config=config(seed))
    ours.load_adapters(folder / "adapters")
    assert ours.versions == quiet.versions
    for name in quiet.adapters:
        pairs = zip(ours.adapter_parameters(name), quiet.adapter_parameters(name), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), (seed, name)
    edges = EdgeDistribution(["agent_0", "agent_1", "agent_2"])
    load_edges(edges, folder / "run" / "checkpoints" / "iteration-0012" / "edges.safetensors")
    assert torch.equal(edges.logits, expected.edges.logits)
    assert len((folder / "run" / "metrics.jsonl").read_text().splitlines()) == 12


def test_a_full_disk_ends_it_and_the_same_run_goes_on_when_there_is_room(
    forking: subprocess.Popen[str], stderr_file: Path, tmp_path: Path
) -> None:
    where = (7, tmp_path / "run", tmp_path / "adapters")
    # state.json, with the history in it, grows with every iteration: some checkpoints fit.
    assert say(forking, "run", *where, 16_000) == "started"
    assert say(forking, "wait") == "1"
    said = stderr_file.read_text().strip().splitlines()[-1]
    assert "ConfigError: cannot write the checkpoint of iteration" in said
    assert "File too large" in said
    whole = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("iteration-*"))
    assert len(whole) == 2, "the last ones that did fit are kept"
    assert not (tmp_path / "adapters").exists()
    assert say(forking, "run", *where, 0) == "started"
    assert say(forking, "wait") == "0"
    assert_as_if_quiet(tmp_path, tmp_path / "quiet", 7)
