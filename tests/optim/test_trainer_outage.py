"""An endpoint dies in the middle of training: what is finished is kept, and the run resumes."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learning_fakes import TinyModel
from learning_run import CONFIG, trainer
from loopback import Loopback, Reply, failing
from loopback_client import records
from same_run import checkpoints, lines, same_run

from swarm_ui.errors import BudgetExceeded, ModelError, ModelUnavailable
from swarm_ui.nodes import OpenAIModel
from swarm_ui.optim.adversary import LLMAdversary
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.optim.trainer import TeamResult

AGENTS = ("agent_0", "agent_1", "agent_2")
SHORT = replace(CONFIG, iterations=2, shared_iterations=1, episodes=8)


class Mortal(Loopback):
    """A critic, an adversary and an agent, which answer by the words of the question; it may die
    and come back."""

    def __init__(self, *, dies_at: int = 0) -> None:
        """``dies_at``: the request at which connections are cut and refused, until :meth:`revive`;
        0: never."""
        super().__init__(self._reply, models=("critic", "adversary", "agent"))
        self.dies_at, self.asked, self.dead = dies_at, 0, False

    def _reply(self, body: dict[str, Any]) -> Reply:
        self.asked += 1
        if self.asked == self.dies_at:
            self._die()
        if self.dead:
            return Reply(cut=True)
        words = json.dumps(body["messages"])
        if body["model"] == "critic":
            return Reply(json.dumps({name: _draw(words, name) % 2 for name in AGENTS}))
        return Reply(json.dumps({"action_type": "click", "index": _draw(words, "") % 4}))

    def _die(self) -> None:
        self.dead = True
        assert self._server is not None
        self.port = self._server.sockets[0].getsockname()[1]
        self._server.close()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()

    async def revive(self) -> None:
        """Answer again, at the same address."""
        self.dead = False
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)


def _draw(words: str, name: str) -> int:
    return zlib.crc32(f"{name}:{words}".encode())


async def trained(
    server: Loopback, model: TinyModel, folder: Path | None = None, **critic: Any
) -> TeamResult:
    """Train with a critic and an adversary behind the endpoint."""
    given: dict[str, Any] = {"max_retries": 1, "timeout": 20.0}
    judge = OpenAIModel("critic", server.url, **records(**given, **critic))
    opponent = OpenAIModel("adversary", server.url, **records(**given))
    made = trainer(
        model, config=SHORT, critic=LLMCritic(judge), adversary=LLMAdversary(opponent),
        folder=folder,
    )  # fmt: skip
    try:
        return await made.run(resume=True)
    finally:
        await judge.close()
        await opponent.close()


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", [1, 200])
async def test_an_endpoint_that_dies_ends_the_run_which_resumes_to_the_same(
    tmp_path: Path, dies_at: int
) -> None:
    quiet, lost, ours, done = TinyModel(), TinyModel(), TinyModel(), int(dies_at > 1)
    async with Mortal() as server:
        expected = await trained(server, quiet)
    async with Mortal(dies_at=dies_at) as server:
        with pytest.raises(ModelUnavailable) as caught:
            await trained(server, lost, tmp_path)
        told = str(caught.value)
        for part in (f"iteration {done + 1} of 2: ", "left unanswered", "the model answers"):
            assert part in told
        assert len(checkpoints(tmp_path) if done else []) == done
        assert set(lost.versions.values()) == {done}, "the weights are those of what is finished"
        await server.revive()
        same_run(ours, await trained(server, ours, tmp_path), quiet, expected)
    assert [line["iteration"] for line in lines(tmp_path)] == [0, 1]


async def test_a_refusal_for_good_is_not_trained_on() -> None:
    async with Loopback(lambda body: failing(401, "who are you")) as server:
        model = TinyModel()
        with pytest.raises(ModelError, match=r"all 8 episodes were lost.*401.*Nothing of this"):
            await trained(server, model)
    assert set(model.versions.values()) == {0}


async def test_a_budget_that_is_used_up_is_said_at_once() -> None:
    async with Mortal() as server:
        with pytest.raises(BudgetExceeded):
            await trained(server, TinyModel(), max_calls=3)
