"""One record of results: what it reads of the two formats before it, and what old runs open as."""

from __future__ import annotations

import json
from pathlib import Path

from cli_world import Shell, shell  # noqa: F401

from swarm_ui.experiment.results import RESULTS_VERSION, ArmResult, Cost, Results
from swarm_ui.storage.run_directory import RunDirectory

OLD_PLAN = {
    "name": "apps-seed1", "split": "apps", "seed": 1, "environment": "phone (simulated)",
    "policy": "base, one agent", "jobs": [["open-app", 1], ["open-app", 2]],
    "outcomes": [1.0, None], "faults": ["EnvironmentFault: gone"], "steps": 5, "calls": 5,
    "tokens": 90, "prompt_tokens": 80, "completion_tokens": 10, "seconds": 2.5,
    "measures": [{"name": "m", "value": 0.5, "low": 0.4, "high": 0.6, "tasks": 2, "steps": 5}],
}  # fmt: skip
OLD_COMMAND = {"version": 1, "made_by": "swarm-ui", "label": "simulated", "plans": [OLD_PLAN]}
OLD_DEMO = {
    "version": 1, "labels": ["simulated"], "splits": {"apps": "new apps"},
    "arms": [{"split": "apps", "environment": "phone (simulated)", "arm": "base-greedy",
              "label": "base, greedy", "jobs": [["open-app", 1]], "outcomes": [1.0], "edges": [],
              "work": {"decisions": 3, "calls": 3, "seconds": 1.0}}],
    "training_cpu_seconds": 12.5,
}  # fmt: skip


def written(folder: Path, document: object) -> Results:
    (folder / "results.json").write_text(json.dumps(document), encoding="utf-8")
    return Results.load(folder)


def test_results_of_commands_of_version_1(tmp_path: Path) -> None:
    found = written(tmp_path, OLD_COMMAND)
    (arm,) = found.arms
    assert (found.version, found.labels) == (RESULTS_VERSION, ("simulated",))
    assert (arm.name, arm.seed, arm.label) == ("apps-seed1", 1, "base, one agent")
    assert (arm.solved, arm.masked, arm.faults) == (1, 1, ("EnvironmentFault: gone",))
    assert (arm.work.decisions, arm.work.tokens, arm.work.seconds) == (5, 90, 2.5)
    assert arm.measures[0].percent() == "50.0 [40.0, 60.0]"


def test_tokens_of_the_first_runs_were_only_counted_together(tmp_path: Path) -> None:
    plan = {k: v for k, v in OLD_PLAN.items() if k not in ("prompt_tokens", "completion_tokens")}
    assert written(tmp_path, {**OLD_COMMAND, "plans": [plan]}).arms[0].work.tokens == 90


def test_results_of_demos_of_version_1(tmp_path: Path) -> None:
    found = written(tmp_path, OLD_DEMO)
    assert found.training_cpu_seconds == 12.5
    assert found.arms[0].work.calls_per_decision == 1.0
    assert found.rows()[0].success is not None


def test_results_come_back(tmp_path: Path) -> None:
    arm = ArmResult(split="apps", jobs=(("t", 1),), outcomes=(1.0,), work=Cost(calls=2))
    results = Results(arms=[arm], labels=("simulated",))
    results.save(tmp_path)
    assert Results.load(tmp_path) == results


def test_a_result_takes_the_place_of_an_earlier_one() -> None:
    results = Results(arms=[])
    for value in (0.0, 1.0):
        results.put(ArmResult(split="apps", arm="a", jobs=(("t", 1),), outcomes=(value,)))
    results.put(ArmResult(split="apps", arm="a", seed=1, jobs=(("t", 2),), outcomes=(0.0,)))
    assert results.outcomes == [1.0, 0.0]


def test_old_runs_open_in_view(shell: Shell) -> None:  # noqa: F811
    for name, document, config in (
        ("command", OLD_COMMAND, {"made_by": "swarm-ui", "command": "eval"}),
        ("demo", OLD_DEMO, {"env": "phone"}),
    ):
        run = RunDirectory.create(shell.folder / name, name=name, config=config)
        written(run.path, document)
        done = shell(f"view {name} --no-open --json")
        assert done.code == 0, done.err
        assert "1 of 1 " in Path(done.json["report"]).read_text(encoding="utf-8")
