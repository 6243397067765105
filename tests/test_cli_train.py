"""``train`` on the phone with the base agent, and what can be done with what it leaves."""

from __future__ import annotations

import json

import pytest
from cli_world import Shell, shell  # noqa: F401

pytest.importorskip("torch")

_SMALL = (
    "train phone --iterations 2 --rollouts 6 --agents 2 --rounds 1 --learn-edges learned "
    "--set train.graphs=2 --set train.shared_iterations=1 --set train.shared_steps=2 "
    "--set train.update.steps=2 --set train.rank=2"
)


def test_a_team_is_trained_exported_and_evaluated(shell: Shell) -> None:  # noqa: F811
    done = shell(f"{_SMALL} --out t --json")
    assert done.code == 0, done.err
    assert [row["iteration"] for row in done.json["iterations"]] == [0, 1]
    assert all(row["pairs"] > 0 for row in done.json["iterations"])
    assert (shell.folder / "t/report.html").is_file()

    assert shell("export t adapters -o adapters --json").json["adapters"] == ["agent_0", "agent_1"]
    assert (shell.folder / "adapters/agent_1/adapter_config.json").is_file()
    pairs = [json.loads(line) for line in shell("export t pairs").out.splitlines()]
    assert pairs and {"prompt", "chosen", "node"} <= set(pairs[0])
    edges = json.loads(shell("export t edges").out)
    assert {(e["from"], e["to"]) for e in edges["probabilities"]} == {
        ("agent_0", "agent_1"), ("agent_1", "agent_0"),
    }  # fmt: skip

    line = "eval phone -n 2 --adapters t/adapters --agents 2 --max-steps 3"
    trained = shell(f"{line} --out e --json")
    assert trained.code == 0 and trained.json["plans"][0]["episodes"] == 2
    missing = shell("eval phone -n 2 --adapters t/adapters --agents 3 --out x")
    assert missing.code == 2 and "not agent_2" in " ".join(missing.err.split())

    again = shell("train --resume t --json")
    assert again.code == 0 and again.json["iterations"] == done.json["iterations"]


def test_what_cannot_be_trained_is_refused(shell: Shell) -> None:  # noqa: F811
    done = shell(f"{_SMALL} --model script:right.txt --out t")
    assert done.code == 2 and "cannot be trained" in done.err
    assert not (shell.folder / "t").exists()
    wrong = shell("train phone --method dp --iterations -1")
    assert wrong.code == 2 and "--method" in wrong.err
    assert "iterations must be >= 0" in " ".join(wrong.err.split())


def test_a_dry_run_tells_the_credit(shell: Shell) -> None:  # noqa: F811
    assert shell(f"{_SMALL} --dry-run --json").json["credit"] == "scripted critic"
    told = shell(f"{_SMALL} --dry-run --no-critic --json").json
    assert told["credit"] == "outcome of the episode" and told["team"] == "2 agents, 1 round"
