"""``--quick`` from end to end: what it writes, and that an interrupted run goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from demo_runs import SCRIPT, demo, environment, needs_agent
from interrupts import hear_ctrl_c

from swarm_ui.environments.miniwob import find_browser
from swarm_ui.experiment.split_facts.need_of_a_team import TITLE
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import read_jsonl

pytestmark = [needs_agent, pytest.mark.slow, pytest.mark.timeout(400)]

AGENTS = [f"agent_{k}" for k in range(4)]
ARMS = ["base-greedy", "base-vote", "trained-greedy", "trained-vote", "trained-team"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of ``--quick``."""
    folder = tmp_path_factory.mktemp("quick")
    # One process: this one was forked with torch imported, the next would import it again.
    fewer = ["--episodes", 12, "--episodes-test", 24, "--processes", 1]
    done = demo("--quick", *fewer, "--out", folder / "run", cwd=folder, process=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"report: {folder / 'run' / 'report.html'}"
    assert done.stderr == ""
    return folder / "run"


@pytest.fixture(scope="module")
def results(quick: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((quick / "results.json").read_text())
    return found


def test_the_run_directory_is_complete(quick: Path) -> None:
    run = RunDirectory.open_existing(quick)
    assert run.status()["stage"] == "done"
    assert run.config()["quick"] is True
    kinds = [line["kind"] for line in run.metrics()]
    assert kinds.count("iteration") == kinds.count("rollouts") == kinds.count("credit") == 2
    edges = json.loads((run.edges / "edges.json").read_text())
    assert len(edges["iterations"]) == 2
    assert edges["tested"]["edges"] not in [
        graph for played in edges["iterations"] for graph in played
    ]


def test_every_arm_is_measured_on_the_same_episodes(results: dict[str, Any]) -> None:
    phone = [arm for arm in results["arms"] if arm["split"] == "parameters"]
    assert [arm["arm"] for arm in phone] == ARMS
    for arm in phone:
        assert arm["jobs"] == phone[0]["jobs"]
        assert set(arm["outcomes"]) <= {0.0, 1.0}
        assert len(arm["outcomes"]) == len(arm["jobs"]) > 0
    assert all(20_000_000 <= seed < 30_000_000 for _, seed in phone[0]["jobs"])
    web = [arm["arm"] for arm in results["arms"] if arm["split"] == "web"]
    assert web == (["base-greedy", "trained-vote"] if find_browser() else [])


def test_the_table_says_what_is_not_real(results: dict[str, Any]) -> None:
    label = " ".join(results["labels"])
    assert "simulated" in label
    assert "scripted critic" in label
    assert results["rollouts"]["calls"] > 0
    assert 0 < results["rollouts"]["model_seconds"] <= results["rollouts"]["seconds"]


def test_traces_hold_whole_episodes(quick: Path) -> None:
    for name in ("parameters-trained-team", "train-000", "train-001"):
        episodes = read_jsonl(quick / "traces" / f"{name}.jsonl")
        assert episodes
        calls = [call for e in episodes for step in e.steps for call in step.trace.calls]
        assert all(call.prompt for call in calls if call.node in AGENTS)
    graded = read_jsonl(quick / "traces" / "train-000.jsonl")
    assert all(len(step.credit or ()) == 3 for e in graded for step in e.steps)


def test_the_report_stands_alone(quick: Path) -> None:
    page = (quick / "report.html").read_text(encoding="utf-8")
    assert "simulated" in page
    assert "trained team, no edges" in page
    assert TITLE in page
    assert page.count("data:image/png") + page.count('"png"') > 0
    assert not re.search(r"""(src|href)=["']https?:""", page)


def test_adapters_load_in_plain_peft(quick: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from swarm_ui.nodes.models.tiny_agent.local_model import (
        BASE_AGENT,
    )  # registers the architecture

    for name in AGENTS:
        base = AutoModelForCausalLM.from_pretrained(BASE_AGENT)
        model = PeftModel.from_pretrained(base, str(quick / "adapters" / name))
        weights = [p for key, p in model.named_parameters() if "lora_B" in key]
        assert weights
        assert any(bool(p.abs().sum() > 0) for p in weights), "nothing was learned"
        assert torch.isfinite(torch.stack([p.sum() for p in weights])).all()


@contextmanager
def started(*arguments: object, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)], cwd=cwd, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < until, f"{path} did not come"
        time.sleep(0.02)


@pytest.mark.slow  # three starts of the demo
def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    small = ["--quick", "--iterations", 3, "--episodes", 8, "--episodes-test", 4]
    small += ["--processes", 1]  # each process imports torch
    with started(*small, "--out", run, cwd=tmp_path) as process:
        wait_for(run / "checkpoints" / "iteration-0001", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
        process.wait(timeout=60)
    assert process.returncode == 130
    assert said == f"stopped; continue with: python {SCRIPT} --resume {run}\n"
    with started("--resume", run, cwd=tmp_path) as process:
        wait_for(run / "checkpoints" / "iteration-0002", process)
        process.kill()
    done = demo("--resume", run, cwd=tmp_path, process=True)
    assert done.returncode == 0, done.stderr
    lines = RunDirectory.open_existing(run).metrics()
    assert [line["iteration"] for line in lines if line["kind"] == "iteration"] == [0, 1, 2]
    results = json.loads((run / "results.json").read_text())
    found = [arm["arm"] for arm in results["arms"] if arm["split"] == "parameters"]
    assert found == ARMS
