"""``train model.actor.url=URL --model FOLDER``: a server acts, this process learns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_world import Shell
from vllm_stand_in import StandIn

from swarm_ui.trace.jsonl import read_jsonl

pytest.importorskip("peft")

_SMALL = (
    "--iterations 2 --rollouts 2 --agents 2 --rounds 1 train.shared_iterations=1 "
    "train.update.steps=1 train.update.batch_size=2 "
    "train.rank=2 env.max_steps=2 train.guide=0.0"
)


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_causal import saved

    return saved(tmp_path_factory.mktemp("model"))


@pytest.mark.slow
def test_the_server_acts_with_what_is_learned_here(shell: Shell, learner: Path) -> None:
    from tiny_causal import reads_alike

    with StandIn("served", tokens=reads_alike(learner)) as server:
        line = f"train phone model.actor.url={server.address}/v1 --model {learner} {_SMALL}"
        done = shell(f"{line} --out t --json")
        assert done.code == 0, done.err
        assert server.adapters == {}
        resumed = shell("train --resume t")
        assert resumed.code == 2 and f"connect to {server.address}/v1" in resumed.err
        again = shell("train --resume t --trust --json")
        assert again.code == 0 and again.json["iterations"] == done.json["iterations"]
    episodes = read_jsonl(shell.folder / "t/traces/train-001.jsonl")
    spoken = {c.adapter for e in episodes for s in e.steps for c in s.trace.calls if c.adapter}
    assert {name.partition("@")[0] for name in spoken} == {"agent_0", "agent_1"}
    assert spoken <= {name.rpartition("-")[0] for name in server.asked}
    lines = (shell.folder / "t/metrics.jsonl").read_text().splitlines()
    costs = [json.loads(line) for line in lines]
    assert all(line["calls"] > 0 for line in costs if line["kind"] == "rollouts")


def test_what_cannot_act_or_learn_is_one_clear_line(shell: Shell, learner: Path) -> None:
    base = shell("train phone model.actor.url=http://127.0.0.1:9/v1 --dry-run")
    assert base.code == 2 and "only in model local" in base.err
    with StandIn("served", tokens=lambda turns: [1]) as server:
        line = f"train phone model.actor.url={server.address}/v1 --model {learner} {_SMALL}"
        other = shell(f"{line} --out a")
        assert other.code == 2 and "the same model and chat template" in " ".join(other.err.split())
        named = shell(f"{line} model.actor.name=another --out b")
        assert named.code == 2 and "expected 'another' at" in " ".join(named.err.split())
    gone = shell(f"{line} --out c")
    assert gone.code != 0 and "no connection" in " ".join(gone.err.split())
    assert not (shell.folder / "c").exists()
