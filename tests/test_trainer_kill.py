"""Training killed with ``kill -9`` at random moments ends with the weights of a quiet run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from learning_fakes import TinyModel
from learning_run import run
from trainer_child import config

from swarm_ui.optim.edge_files import load_edges
from swarm_ui.optim.edges import EdgeDistribution

ROOT = Path(__file__).parent.parent
KILLS = 30
LONGEST = 0.4
"""Seconds; a few iterations."""


@pytest.fixture
def children(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """What forks the processes that are killed; it and they are gone in the end."""
    with (tmp_path / "said.txt").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "trainer_child.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def say(process: subprocess.Popen[str], *words: object) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(" ".join(map(str, words)) + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


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


def test_killed_30_times_the_weights_are_those_of_an_uninterrupted_run(
    children: subprocess.Popen[str], tmp_path: Path
) -> None:
    rng, kills, seed = random.Random(0), 0, 0
    while kills < KILLS:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        kills += trained_under_fire(children, seed, folder, rng)
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
    children: subprocess.Popen[str], tmp_path: Path
) -> None:
    where = (7, tmp_path / "run", tmp_path / "adapters")
    # state.json, with the history in it, grows with every iteration: some checkpoints fit.
    assert say(children, "run", *where, 16_000) == "started"
    assert say(children, "wait") == "1"
    said = (tmp_path / "said.txt").read_text().strip().splitlines()[-1]
    assert "ConfigError: cannot write the checkpoint of iteration" in said
    assert "File too large" in said
    whole = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("iteration-*"))
    assert len(whole) == 2, "the last ones that did fit are kept"
    assert not (tmp_path / "adapters").exists()
    assert say(children, "run", *where, 0) == "started"
    assert say(children, "wait") == "0"
    assert_as_if_quiet(tmp_path, tmp_path / "quiet", 7)
