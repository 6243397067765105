"""An endpoint dies in the middle of training: nothing is lost, whether it comes back or not."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from learning_fakes import ButtonWorld, TinyModel, button_team
from learning_run import CONFIG, sample_jobs
from loopback import Loopback, failing
from loopback_client import records
from mortal_endpoint import Mortal

from swarm_ui.errors import BudgetExceeded, ModelError, ModelUnavailable
from swarm_ui.nodes import OpenAIModel
from swarm_ui.optim import playing
from swarm_ui.optim.adversary import LLMAdversary
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.optim.trainer import TeamResult, TeamTrainer

SHORT = replace(CONFIG, iterations=2, shared_iterations=1, episodes=8, patience=20.0)
MIDST = 60
"""A request among those of the first rollouts."""


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(playing, "FIRST_PAUSE", 0.05)
        monkeypatch.setattr(playing, "LONGEST_PAUSE", 0.2)


@contextlib.asynccontextmanager
async def asking(server: Loopback, name: str, **settings: Any) -> AsyncIterator[OpenAIModel]:
    given: dict[str, Any] = {"max_retries": 1, "timeout": 20.0, **settings}
    model = OpenAIModel(name, server.url, **records(**given))
    try:
        yield model
    finally:
        await model.close()


async def trained(
    server: Loopback,
    model: TinyModel,
    folder: Path | None,
    *,
    said: list[str] | None = None,
    config: Any = SHORT,
    critic: dict[str, Any] | None = None,
    endpoint: dict[str, Any] | None = None,
) -> TeamResult:
    """Train with a critic and an adversary behind the endpoint."""
    async with contextlib.AsyncExitStack() as stack:
        judge, opponent = [
            await stack.enter_async_context(asking(server, name, **(endpoint or {}) | more))
            for name, more in (("critic", critic or {}), ("adversary", {}))
        ]
        graph = button_team(model)
        trainer = TeamTrainer(
            graph, ButtonWorld, sample_jobs, config=config, critic=LLMCritic(judge),
            adversary=LLMAdversary(opponent), folder=folder,
        )  # fmt: skip
        trainer.warn = ([] if said is None else said).append
        return await trainer.run(resume=True)


class Quiet(NamedTuple):
    """What comes of training when nothing happens."""

    model: TinyModel
    result: TeamResult


@pytest.fixture(scope="module")
def quiet() -> Quiet:
    async def run() -> Quiet:
        model = TinyModel()
        async with Mortal() as server:
            return Quiet(model, await trained(server, model, None))

    return asyncio.run(run())


def same(one: TinyModel, other: TinyModel) -> bool:
    assert one.versions == other.versions
    return all(
        torch.equal(a, b)
        for name in one.adapters
        for a, b in zip(one.adapter_parameters(name), other.adapter_parameters(name), strict=True)
    )


def outcomes(result: TeamResult) -> list[Any]:
    return [
        (m["success"], m["credit"], m["unscored"], m["masked"], m["pairs"]) for m in result.history
    ]


@pytest.mark.parametrize(
    "how", ["gone", *(pytest.param(how, marks=pytest.mark.slow) for how in ("busy", "mute"))]
)
async def test_an_endpoint_that_comes_back_costs_time_and_nothing_else(
    quiet: Quiet, how: str
) -> None:
    ours = TinyModel()
    said: list[str] = []
    mute = how == "mute"
    async with Mortal(dies_at=MIDST, seconds=2.0 if mute else 0.8, how=how) as server:
        given = {"timeout": 0.5 if mute else 20.0}
        result = await trained(server, ours, None, said=said, endpoint=given)
    assert same(ours, quiet.model)
    assert torch.equal(result.edges.logits, quiet.result.edges.logits)
    assert outcomes(result) == outcomes(quiet.result)


@pytest.mark.parametrize("dies_at", [1, pytest.param(200, marks=pytest.mark.slow)])
async def test_an_endpoint_that_never_comes_back_ends_it_and_it_resumes_to_the_same(
    quiet: Quiet, tmp_path: Path, dies_at: int
) -> None:
    async with Mortal(dies_at=dies_at, seconds=inf) as server:
        lost = TinyModel()
        with pytest.raises(ModelUnavailable) as caught:
            await trained(server, lost, tmp_path, config=replace(SHORT, patience=0.3))
        done = int(dies_at > 1)
        told = str(caught.value)
        assert f"iteration {done + 1} of 2: " in told
        assert "left unanswered for 0.3 s" in told
        assert "Nothing of this iteration was learned" in told
        assert "the model answers" in told
        assert len(list((tmp_path / "checkpoints").glob("iteration-*"))) == done
        assert set(lost.versions.values()) == {done}, "the weights are those of what is finished"
        await server.revive()
        ours = TinyModel()
        result = await trained(server, ours, tmp_path)
    assert same(ours, quiet.model)
    assert outcomes(result) == outcomes(quiet.result)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [0, 1]


async def test_a_refusal_for_good_is_not_waited_for_and_not_trained_on() -> None:
    async with Loopback(lambda body: failing(401, "who are you")) as server:
        model = TinyModel()
        with pytest.raises(ModelError, match=r"all 8 episodes were lost.*401.*Nothing of this"):
            await trained(server, model, None)
    assert set(model.versions.values()) == {0}


async def test_a_budget_that_is_used_up_is_said_at_once() -> None:
    async with Mortal() as server:
        with pytest.raises(BudgetExceeded):
            await trained(server, TinyModel(), None, critic={"max_calls": 3})
