"""``accelerate launch -m swarm_ui train``: one process plays, two learn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import Shell
from interrupts import hear_ctrl_c, wait_for

pytest.importorskip("peft")
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
_LAUNCH = (
    "-m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 "
    "--mixed_precision no --dynamo_backend no --main_process_port 0 -m swarm_ui"
)
_SMALL = (
    "train phone --rollouts 4 --agents 2 --rounds 1 env.max_steps=4 train.rank=2 "
    "train.shared_iterations=1 train.update.steps=3"
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def launched(words: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *_LAUNCH.split(), *words.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )


def test_two_processes_train_the_adapters_of_one(shell: Shell) -> None:
    words = f"{_SMALL} --iterations 2 --json"
    alone = shell(f"{words} --out alone")
    assert alone.code == 0, alone.err
    process = launched(f"{words} --out two", shell.folder)
    out, err = process.communicate()
    assert process.returncode == 0, err[-3000:]
    (document,) = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert document["ok"] and document["run"] == "two"
    rows, expected = document["iterations"], alone.json["iterations"]
    assert [row["pairs"] for row in rows] == [row["pairs"] for row in expected]
    for agent in ("agent_0", "agent_1"):
        places = [shell.folder / run / "adapters" / agent for run in ("alone", "two")]
        one, two = (load_file(place / "adapter_model.safetensors") for place in places)
        assert one.keys() == two.keys() and all(
            torch.allclose(one[name], two[name], atol=1e-3) for name in one
        )
        assert (places[0] / "swarm_ui.json").read_text() == (
            places[1] / "swarm_ui.json"
        ).read_text()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc")
def test_a_killed_process_ends_the_run_with_one_line(shell: Shell) -> None:
    process = launched(f"{_SMALL} --iterations 6 --out t", shell.folder)
    wait_for(process, (shell.folder / "t/checkpoints/iteration-0001").exists, 900)
    os.kill(_child(process.pid, 1), signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode != 0
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    said = "stopped; saved in t; continue with: swarm-ui train --resume t"
    assert "ended" in line and said in err.splitlines()
    again = shell("train --resume t --json")  # with one process
    assert again.code == 0, again.err
    assert [row["iteration"] for row in again.json["iterations"]] == list(range(6))


def test_ctrl_c_saves_the_run(shell: Shell) -> None:
    process = launched(f"{_SMALL} --iterations 6 --out t", shell.folder)
    wait_for(process, (shell.folder / "t/checkpoints/iteration-0001").exists, 900)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all processes
    _, err = process.communicate()
    assert process.returncode != 0
    assert "stopped; saved in t; continue with: swarm-ui train --resume t" in err.splitlines()
    assert not [line for line in err.splitlines() if line.startswith("error: ")], err


def _child(launcher: int, rank: int) -> int:
    """The process of this number that a launcher started."""
    for number in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        given = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in given:
            return int(number)
    raise AssertionError("the launcher has no such process")


def test_a_mistake_ends_every_process(tmp_path: Path) -> None:
    process = launched("train phone --model no/such/folder/at/all --out t", tmp_path)
    _, err = process.communicate()
    assert process.returncode != 0
    assert sum(line.startswith("error: ") for line in err.splitlines()) == 1
    assert not (tmp_path / "t").exists()
