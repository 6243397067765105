"""``train --on ray`` leaves what ``train`` leaves."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_world import Shell
from local_ray import local_ray
from random_critic import save_random_critic
from sent_rollouts import figures
from tiny_causal import write_tiny_model
from vllm_stand_in import StandIn

pytest.importorskip("torch")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1800)]

_SMALL = (
    "train phone --rollouts 4 --agents 2 --rounds 1 env.max_steps=3 "
    "train.shared_iterations=1 train.update.steps=2 "
    "train.rank=2 run.report=false"
)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    with local_ray(cpus=4) as found:
        yield found


def left(folder: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The metrics without times, and the weights of the adapters."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    weights = {path.parent.name: path.read_bytes()
               for path in folder.glob("adapters/*/adapter_model.safetensors")}  # fmt: skip
    return figures([json.loads(line) for line in lines]), weights


@pytest.mark.parametrize("more", ["", " place.model_actor=true"])
def test_workers_leave_what_this_process_leaves(shell: Shell, more: str) -> None:
    """``place.model_actor``: one process holds the model for all of them."""
    for folder, options in (("here", ""), ("there", f"--on ray place.workers=2{more}")):
        done = shell(f"{_SMALL} --iterations 2 {options} --out {folder} --json")
        assert done.code == 0, done.err
    here, there = left(shell.folder / "here"), left(shell.folder / "there")
    assert here == there and len(here[1]) == 2

    resumed = shell("train --resume there --on local --json")  # it is finished
    assert resumed.code == 0, resumed.err
    assert left(shell.folder / "there") == here


def test_a_learned_critic_on_workers_is_refused(shell: Shell) -> None:
    save_random_critic(write_tiny_model(shell.folder / "tiny"), shell.folder / "judge")
    done = shell(f"{_SMALL} --model tiny --critic learned critic.folder=judge --on ray")
    assert done.code == 2 and "expected another one, or --on local" in done.err


def _click(body: Mapping[str, Any]) -> str:
    """A click that depends on the question alone."""
    number = zlib.crc32(json.dumps(body["messages"]).encode()) % 3
    return json.dumps({"action_type": "click", "index": number})


def test_a_server_acts_for_the_workers(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tiny_causal import reads_alike, saved

    learner = saved(tmp_path_factory.mktemp("model"))
    with StandIn("served", tokens=reads_alike(learner), reply=_click) as server:
        line = (
            f"{_SMALL} model.actor.url={server.address}/v1 --model {learner} --iterations 3 "
            "train.update.batch_size=2"
        )
        for folder, options in (("here", ""), ("there", "--on ray place.workers=2")):
            server.loads.clear()
            done = shell(f"{line} {options} --out {folder} --json")
            assert done.code == 0, done.err
            assert server.adapters == {} and len(server.loads) == len(set(server.loads)) > 2
        assert "served" not in server.asked
        line = f"{line} --iterations 1 --critic llm"
        done = shell(f"{line} --on ray place.workers=2 --out critic --json")  # asks the base model
        assert done.code == 5 and "served" in server.asked, done.err  # it scores nothing
    (here, weights), (there, others) = left(shell.folder / "here"), left(shell.folder / "there")
    assert weights == others and here == there
