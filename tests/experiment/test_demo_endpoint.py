"""The demo over an OpenAI-compatible endpoint: acts, is rated, and needs no torch for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from demo_runs import demo, without
from loopback import Loopback, Reply

from swarm_ui.trace.jsonl import read_jsonl

AGENT = 'Reason: done.\nAction: {"action_type": "status", "goal_status": "complete"}'
VERDICT = "They stop too early.\n" + json.dumps({f"agent_{k}": 0 for k in range(4)})


def answer(body: dict[str, Any]) -> Reply:
    return Reply(VERDICT if body["model"] == "judge" else AGENT)


async def run(cwd: Path, *arguments: str, **extra: str) -> tuple[int, str, str]:
    done = await asyncio.to_thread(demo, *arguments, cwd=cwd, **extra)
    return done.returncode, done.stdout, done.stderr


async def test_one_agent_against_the_team(tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    run_folder = tmp_path / "run"
    async with Loopback(answer, models=["tiny", "judge"]) as server:
        code, out, err = await run(
            tmp_path, "--base-url", server.url, "--model", "tiny", "--critic-model", "judge",
            "--episodes-test", "2", "--rounds", "2", "--out", str(run_folder),
            PYTHONPATH=without(stubs, "torch"),
        )  # fmt: skip
        asked = [seen.body["model"] for seen in server.requests]
    assert code == 0, err
    assert out.splitlines()[-1] == f"report: {run_folder / 'report.html'}"
    assert "not trained" in out.replace("\n", " ")
    # Two episodes of one step: one agent once, four agents in two rounds. All say the same, so one
    # verdict serves all of an episode.
    assert asked.count("tiny") == 2 * (1 + 4 * 2)
    assert asked.count("judge") == 2
    results = json.loads((run_folder / "results.json").read_text())
    assert [arm["arm"] for arm in results["arms"]] == ["base-greedy", "team"]
    assert [arm["work"]["calls"] for arm in results["arms"]] == [2, 16]
    assert "LLM critic (judge)" in results["labels"][0]
    team = read_jsonl(run_folder / "traces" / "parameters-team.jsonl")
    assert team and all(e.steps[0].credit == ((0.0,) * 4,) * 2 for e in team)
    assert "LLM critic (judge)" in (run_folder / "report.html").read_text()


async def test_a_model_that_is_not_served(tmp_path: Path) -> None:
    async with Loopback(answer, models=["tiny"]) as server:
        code, out, err = await run(
            tmp_path, "--base-url", server.url, "--model", "tiny", "--critic-model", "judge"
        )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "judge" in err
    assert not list(tmp_path.iterdir())


async def test_a_spent_budget_can_be_resumed(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    async with Loopback(answer, models=["tiny"]) as server:
        code, _, err = await run(
            tmp_path, "--base-url", server.url, "--model", "tiny", "--max-calls", "3",
            "--episodes-test", "2", "--out", str(run_folder),
        )  # fmt: skip
    assert code == 2
    assert "--resume" in err and "--trust" in err
    results = json.loads((run_folder / "results.json").read_text())
    assert [arm["arm"] for arm in results["arms"]] == ["base-greedy"]


async def test_the_critic_and_the_agents_share_the_budget(tmp_path: Path) -> None:
    async with Loopback(answer, models=["tiny", "judge"]) as server:
        code, _, err = await run(
            tmp_path, "--base-url", server.url, "--model", "tiny", "--critic-model", "judge",
            "--max-calls", "6", "--episodes-test", "2", "--out", str(tmp_path / "run"),
        )  # fmt: skip
        asked = [seen.body["model"] for seen in server.requests]
    assert code == 2 and "6 calls" in err, err
    # A request that the budget allowed may be cancelled before it is sent.
    assert len(asked) <= 6 and set(asked) == {"tiny", "judge"}
