"""``swarm-ui eval`` with ``coordination``, whose tasks have their own teams."""

from __future__ import annotations

import json

import pytest
from cli_world import Shell

from swarm_ui.environments.coordination import TEST_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.coordination.benchmark import Coordination
from swarm_ui.experiment.benchmarks import held_out_rule, opened
from swarm_ui.trace.jsonl import read_jsonl

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
