"""``train`` on the phone with the base agent, and what can be done with what it leaves."""

from __future__ import annotations

import json
import sys

import pytest
from cli_world import Shell

from swarm_ui.optim import EdgeDistribution
from swarm_ui.trace.jsonl import read_jsonl

pytest.importorskip("torch")

_SMALL = (
    "train phone --iterations 2 --rollouts 6 --agents 2 --rounds 1 --learn-edges learned "
    "train.graphs=2 train.shared_iterations=1 "
    "train.update.steps=2 train.rank=2"
)
BROKEN = """from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import EnvironmentFault

class Broken(Wrapper):
    async def reset(self, *, task, seed):
        raise EnvironmentFault("broken")
"""


@pytest.mark.slow
def test_a_training_in_which_every_episode_broke_is_no_success(shell: Shell) -> None:
    (shell.folder / "broken_world.py").write_text(BROKEN, encoding="utf-8")
    done = shell(
        "train phone --agents 2 --rounds 1 --iterations 1 --rollouts 2 "
        "env.wrap=broken_world:Broken --out broken --json"
    )
    assert done.code == 3, done.err
    assert done.json["ok"] is False and done.json["iterations"][0]["masked"] == 2
    assert "nothing was learned: the environment broke in all 2 episodes" in done.err


def test_a_teacher_shows_what_no_agent_found(shell: Shell) -> None:
    line = (
        "train invented env.devices=2 --edges none --agents 2 --rounds 1 --iterations 1 "
        "--rollouts 6 critic.teacher=scripted --out t train.rank=2 "
        "train.shared_iterations=1 train.update.steps=1"
    )
    assert shell(f"{line} --dry-run --json").json["teacher"] == "scripted"
    assert shell(line).code == 0
    lines = (shell.folder / "t/metrics.jsonl").read_text().splitlines()
    (metrics,) = [row for row in map(json.loads, lines) if row.get("kind") == "iteration"]
    assert metrics["sources/teacher > own"] > 0


def test_a_team_is_trained_exported_and_evaluated(shell: Shell) -> None:
    done = shell(f"{_SMALL} --out t --json")
    assert done.code == 0, done.err
    assert [row["iteration"] for row in done.json["iterations"]] == [0, 1]
    assert all(row["pairs"] > 0 for row in done.json["iterations"])
    assert (shell.folder / "t/report.html").is_file()

    assert shell("export t adapters -o adapters --json").json["adapters"] == ["agent_0", "agent_1"]
    assert (shell.folder / "adapters/agent_1/adapter_config.json").is_file()
    pairs = [json.loads(line) for line in shell("export t pairs").out.splitlines()]
    # trl's trainers need both sides.
    assert pairs and all({"prompt", "chosen", "rejected", "node"} <= set(row) for row in pairs)
    learned = EdgeDistribution.load(shell.folder / "t/edges/distribution.safetensors")
    assert {*learned.marginals()} == {("agent_0", "agent_1"), ("agent_1", "agent_0")}
    mode = learned.mode().edges
    told = shell("eval phone --agents 2 --edges t --dry-run --json").json["edges"]
    assert told == (", ".join(f"{a}>{b}" for a, b in mode) or "none")
    assert (
        "expected the edges of the team, agent_0, agent_1, agent_2"
        in shell("eval phone -a 3 --edges t").err
    )

    episodes = read_jsonl(shell.folder / "t/traces/train-000.jsonl")
    steps = [step for episode in episodes for step in episode.steps]
    assert {step.credit_source for step in steps} == {"scripted critic"}

    line = "eval phone -n 2 --adapters t/adapters --agents 2 env.max_steps=3"
    trained = shell(f"{line} --out e --json")
    assert trained.code == 0 and trained.json["plans"][0]["episodes"] == 2
    missing = shell("eval phone -n 2 --adapters t/adapters --agents 3 --out x")
    assert missing.code == 2 and "not agent_2" in " ".join(missing.err.split())

    again = shell("train --resume t --json")
    assert again.code == 0 and again.json["iterations"] == done.json["iterations"]


def test_a_critic_and_a_loss_of_ones_own(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "own_learning.py").write_text(OWN, encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    line = "train phone --agents 2 --rounds 1 --iterations 1 --rollouts 4 train.rank=2"
    done = shell(
        f"{line} train.update.steps=1 --critic own_learning:praise --loss own_learning:loss --out t"
    )
    assert done.code == 0, done.err
    (source,) = {
        step.credit_source for e in read_jsonl(shell.folder / "t/traces/train-000.jsonl")
        for step in e.steps
    }  # fmt: skip
    assert "praise" in source
    assert (shell.folder / "asked.txt").exists(), "the loss was used"
    refused = shell("train --resume t")
    assert refused.code == 2 and "own_learning:praise' (the critic)" in refused.err
    wrong = shell(f"{line} --critic nobody")
    assert wrong.code == 2 and "no critic 'nobody'" in wrong.err


OWN = """
from pathlib import Path

from swarm_ui.credit import Credit
from swarm_ui.optim import rft_loss


async def praise(episodes):
    return [
        Credit(
            values=tuple(
                tuple((1.0,) * len(step.trace.agents) for _ in range(step.trace.rounds))
                for step in e.steps
            ),
            source="praise",
        )
        for e in episodes
    ]


def loss(model, batch):
    Path("asked.txt").touch()
    return rft_loss(model, batch)
"""


@pytest.mark.slow
def test_a_language_model_may_judge_and_oppose(shell: Shell) -> None:
    """A critic whose reply scores nobody: its messages are unscored, which is not wrong."""
    (shell.folder / "judge.txt").write_text("[]\n")
    done = shell(f"{_SMALL} --critic llm critic.model=script:judge.txt --out t --json")
    assert done.code == 5 and "scored no message" in done.json["reason"], done.err
    assert {row["credit"] for row in done.json["iterations"]} == {None}, "nothing could be scored"
