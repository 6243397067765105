"""``train`` on the phone with the base agent, and what can be done with what it leaves."""

from __future__ import annotations

import json
import shlex

import pytest
from cli_world import Shell, shell  # noqa: F401

from swarm_ui.experiment.config import read_draft
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.runs import check_training_config
from swarm_ui.trace.jsonl import read_jsonl

pytest.importorskip("torch")

_SMALL = (
    "train phone --iterations 2 --rollouts 6 --agents 2 --rounds 1 --learn-edges learned "
    "--set train.graphs=2 --set train.shared_iterations=1 --set train.shared_steps=2 "
    "--set train.update.steps=2 --set train.rank=2 --set train.rehearsal=0.3"
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

    assert edges["learned"] is True
    mode = [tuple(edge) for edge in edges["mode"]]
    assert edges["edges"] == edges["mode"]
    drawn = {("agent_0", "agent_1"): "n0 --> n1", ("agent_1", "agent_0"): "n1 --> n0"}
    shown = shell("export t mermaid").out
    assert [arrow in shown for edge, arrow in drawn.items()] == [edge in mode for edge in drawn]
    told = shell("eval phone --agents 2 --edges t --dry-run --json").json["edges"]
    assert told == (", ".join(f"{a}>{b}" for a, b in mode) or "none")
    assert "the team has agent_0, agent_1, agent_2" in shell("eval phone -a 3 --edges t").err

    episodes = read_jsonl(shell.folder / "t/traces/train-000.jsonl")
    steps = [step for episode in episodes for step in episode.steps]
    assert {step.credit_source for step in steps} == {"scripted critic"}
    assert all(len(step.rationale) == 1 and "success" in step.rationale[0] for step in steps)

    line = "eval phone -n 2 --adapters t/adapters --agents 2 --max-steps 3"
    trained = shell(f"{line} --out e --json")
    assert trained.code == 0 and trained.json["plans"][0]["episodes"] == 2
    missing = shell("eval phone -n 2 --adapters t/adapters --agents 3 --out x")
    assert missing.code == 2 and "not agent_2" in " ".join(missing.err.split())

    again = shell("train --resume t --json")
    assert again.code == 0 and again.json["iterations"] == done.json["iterations"]


def test_the_next_command_after_training_is_one_that_works(shell: Shell) -> None:  # noqa: F811
    done = shell(f"{_SMALL} --set train.adapters=shared --iterations 1 --out my", "--vote",
                 "probability")  # fmt: skip
    (told,) = [line for line in done.err.splitlines() if line.startswith("next: ")]
    words = shlex.split(told.removeprefix("next: swarm-ui "))
    assert words[:2] == ["eval", "phone"] and words[words.index("--edges") + 1] == "my"
    tried = shell("", *words, "-n", "1", "--max-steps", "2", "--out", "e", "--json")
    assert tried.code == 0, tried.err
    (episode,) = read_jsonl(next((shell.folder / "e/traces").iterdir()))
    spoken = {m.adapter for m in episode.steps[0].trace.messages if m.sender != "vote"}
    assert len(spoken) == 1 and None not in spoken, "one adapter for both"


def test_tests_of_mind2web_are_not_trained_on(shell: Shell) -> None:  # noqa: F811
    line = "train mind2web --data here --dry-run --json"
    assert shell(line).code == 0
    done = shell(f"{line} --set environment.split=test_task")
    assert done.code == 2 and "only 'train' is trained on" in done.err
    given = {"environment.name": ("ENV", "mind2web"), "environment.data": ("--data", "here")}
    assert check_training_config(read_draft(None, given, [])).environment.split == "train"
    assert spec_of("mind2web").splits[0] == "test_task", "what run and eval play"


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
