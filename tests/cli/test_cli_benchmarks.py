"""The benchmarks on the command line: suites of AndroidWorld, AutoWebBench, coordination."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from cli_world import Lamp, Shell

from swarm_ui.environments.androidworld import benchmark
from swarm_ui.environments.androidworld.environment import suite
from swarm_ui.environments.coordination import TEST_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.coordination.policy import Coordination
from swarm_ui.environments.recorded.autowebbench import SPLITS, synthetic
from swarm_ui.experiment.benchmarks import held_out_rule, opened
from swarm_ui.trace.jsonl import read_jsonl


class Device(Lamp):
    """Stands for the process with android_world."""

    seen: ClassVar[list[Any]] = []

    def __init__(self, device: str, *, screenshots: bool) -> None:
        self.seen.append(device)
        self.name = "android_world"
        self.tasks: Sequence[str] = ()

    async def start(self) -> None:
        self.tasks = ("WifiOn", "BrowserMaze")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[Device]:
    monkeypatch.setattr(benchmark, "AndroidWorldProcess", Device)
    monkeypatch.setattr(Device, "seen", [])
    return Device


def test_upstreams_suite_is_played_in_its_order(shell: Shell, device: type[Device]) -> None:
    line = "eval handset env.suite_seed=30 env.combinations=2"
    done = shell(f"{line} -m script:mixed.txt --out r --json")
    assert done.code == 0, done.err
    assert set(device.seen) == {"handset"}
    rows = shell("compare r r --json").json["rows"]
    assert rows[0]["difference"]["n"] == 4
    from swarm_ui.report.results import existing_results

    (arm,) = existing_results(shell.folder / "r").arms
    assert list(arm.jobs) == suite(["WifiOn", "BrowserMaze"], combinations=2, seed=30)


def test_autowebbench_with_its_own_measures(shell: Shell) -> None:
    words = ["--split", SPLITS[0], "--split", SPLITS[2], f"env.data={synthetic()}"]
    done = shell("eval autowebbench -m script:mixed.txt --json --out r", *words)
    assert done.code == 0, done.err
    assert [row["name"] for row in done.json["plans"]] == ["en-ind", "zh-ind"]
    assert all(row["measures"] for row in done.json["plans"])
    assert (shell.folder / "r/traces/en-ind.jsonl").is_file()
    assert "Recorded pages, offline" in shell("eval autowebbench -m script:mixed.txt", *words).out


# -- coordination, whose tasks have their own teams ---------------------------------------------

SCRIPTED = "benchmarks.support.coordination_agents"


def test_a_run_plays_the_team_of_the_task(shell: Shell) -> None:
    did = shell(
        f"eval coordination matching-geometric-8 --model {SCRIPTED}:distributed --out r "
        "run.report=false"
    )
    assert did.code == 0, did.err
    assert "scripted, distributed algorithm, one agent for each name" in did.out
    assert "scores are not comparable with published ones" in " ".join(did.out.split())
    (episode,) = read_jsonl(shell.folder / "r" / "traces" / "small.jsonl")
    assert episode.success is True and len(episode.steps[0].trace.agents) == 8


def test_an_evaluation_reports_the_score_beside_the_success(shell: Shell) -> None:
    did = shell(
        f"eval coordination --episodes 3 --model {SCRIPTED}:silent --out r run.report=false"
    )
    assert did.code == 0, did.err
    results = json.loads((shell.folder / "r" / "results.json").read_text())
    ((measure,),) = [arm["measures"] for arm in results["arms"]]
    assert measure["name"] == "score" and 0.0 <= measure["value"] <= 1.0


@pytest.mark.parametrize(
    ("split", "sizes", "seeds"),
    [("small", {4, 8, 16}, TEST_SEEDS), ("large", {50, 100}, TEST_SEEDS),
     ("validation", {4, 8, 16}, VALIDATION_SEEDS)],
)  # fmt: skip
async def test_splits(split: str, sizes: set[int], seeds: range) -> None:
    env = Coordination()
    async with opened(env, split) as environment:
        jobs = await env.jobs(split, 60, 0, environment)
    assert len(jobs) == 60 and {int(task.rpartition("-")[2]) for task, _ in jobs} == sizes
    assert all(seed in seeds for _, seed in jobs)
    rule = held_out_rule([env])
    assert all(rule.why("coordination", task, seed) for task, seed in jobs)
