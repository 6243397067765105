"""Budgets: no text exceeds them, and they count what a resumed run spent before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, Shell
from loopback import Loopback, Reply, in_a_thread
from tokenizers import ByteLevelBPETokenizer
from vllm_stand_in import StandIn

from swarm_ui import (
    Budget,
    BudgetExceeded,
    ChatMessage,
    CollabGraph,
    Element,
    Journal,
    Observation,
    Price,
    Request,
    RunPaused,
)
from swarm_ui.nodes import AgentNode, Ask, OpenAIModel

SCREEN = Observation(goal="press", elements=(Element(index=0, role="button", text="OK"),))


TEXTS = {
    "prose": "The quick brown fox jumps over the lazy dog. " * 4,
    "digits": "1" * 90,
    "telephone numbers": "+49 731 5550123, +1 (212) 555-0187; " * 4,
    "json": '{"a":[1,2,{"b":null}],"c":"\\u00e9"}' * 4,
    "base64": "aGVsbG8gd29ybGQhIC8rPQ==Zm9vYmFyL3o5" * 4,
    "brackets": "[[({<>})]]" * 12,
    "hieroglyphs": "\U00013000\U00013001\U00013216" * 20,
    "emoji": "\U0001f469\u200d\U0001f680\U0001f3fd" * 20,
    "chinese": "点击保存并返回主屏幕" * 6,
}


def count_bytes(text: str) -> int:
    """A tokenizer without merges: one token for each byte, so for each digit too."""
    return len(text.encode())


@cache
def trained_tokenizer() -> Callable[[str], int]:
    """A byte-level BPE as of GPT and Qwen, trained on a little prose."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([TEXTS["prose"]], vocab_size=300)
    return lambda text: len(tokenizer.encode(text).ids)


async def spend(
    text: str, tokens: Callable[[str], int], budget: Budget, *, reported: bool
) -> tuple[int, int]:
    """Call a server until the budget is used up, four calls at a time. Returns the number of calls
    and the tokens that the server counted."""
    counted: list[int] = []

    def serve(body: dict[str, Any]) -> Reply:
        turns = body["messages"]
        prompt = sum(tokens(turn["content"]) + 5 for turn in turns)
        reply = text[:20]
        counted.append(prompt + min(tokens(reply), body["max_tokens"]))
        usage = {"prompt_tokens": prompt, "completion_tokens": counted[-1] - prompt}
        answer = {"index": 0, "message": {"role": "assistant", "content": reply}}
        chat: dict[str, Any] = {"id": "1", "object": "chat.completion", "created": 0}
        chat |= {"model": "tiny", "choices": [answer | {"finish_reason": "stop"}]}
        return Reply(body=json.dumps(chat | ({"usage": usage} if reported else {})))

    request = Request(chat=(ChatMessage("user", text),), max_tokens=10)
    async with Loopback(serve) as server:
        model = OpenAIModel("tiny", server.url, budget=budget)
        with pytest.raises(BudgetExceeded):
            while True:
                calls = (model.generate([request]) for _ in range(4))
                done = await asyncio.gather(*calls, return_exceptions=True)
                for error in done:
                    if isinstance(error, BaseException):
                        raise error
        await model.close()
    return len(counted), sum(counted)


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param(True, id="reported", marks=pytest.mark.slow),
        pytest.param(False, id="not-reported"),
    ],
)
@pytest.mark.parametrize("kind", TEXTS)
async def test_no_text_exceeds_a_budget_of_tokens(kind: str, reported: bool) -> None:
    for tokens in (count_bytes, trained_tokenizer()):
        budget = Budget(max_tokens=1500)
        calls, counted = await spend(TEXTS[kind], tokens, budget, reported=reported)
        assert calls >= 1 and counted <= 1500
        assert counted <= budget.tokens <= 1500


async def test_a_budget_lets_calls_through_as_long_as_they_fit() -> None:
    """What a call reserved and did not use is free again when it has finished."""
    budget = Budget(max_tokens=5000)
    calls, counted = await spend(TEXTS["prose"], trained_tokenizer(), budget, reported=True)
    assert counted > 5000 - 4 * (len(TEXTS["prose"]) + 120) and calls > 4


# -- budgets of runs that are resumed ------------------------------------------------------------


def team_with_a_person(url: str, budget: Budget) -> tuple[CollabGraph, OpenAIModel]:
    """Two agents, a person, and an agent that reads the answer."""
    model = OpenAIModel("tiny", url, budget=budget)
    nodes = [AgentNode("a", model), AgentNode("b", model), Ask("person", "Go on?")]
    nodes += [AgentNode("c", model), AgentNode("d", model)]
    edges = [("a", "person"), ("b", "person"), ("person", "c"), ("c", "d")]
    return CollabGraph(nodes, edges), model


@pytest.mark.parametrize("kept", ["journal", "trace"])
async def test_a_budget_counts_what_a_resumed_run_spent_before(kept: str, tmp_path: Path) -> None:
    prices = {"tiny": Price(prompt=1e6, completion=0)}
    async with Loopback() as server:
        graph, model = team_with_a_person(server.url, Budget(max_calls=3))
        journal = Journal(tmp_path / "runs.jsonl")
        with pytest.raises(RunPaused) as paused:
            await graph.run(SCREEN, run_id="r", journal=journal)
        await model.close()
        assert len(server.requests) == 2
        # What follows happens in another process, whose budget has counted nothing.
        budget = Budget(max_calls=3, prices=prices)
        graph, model = team_with_a_person(server.url, budget)
        with pytest.raises(BudgetExceeded, match="max_calls"):
            if kept == "journal":
                await graph.resume("r", {"person": "yes"}, journal=journal)
            else:
                await graph.resume(paused.value.partial, {"person": "yes"})
        await model.close()
    assert len(server.requests) == 3 == budget.calls
    assert budget.tokens == 3 * 18 and budget.cost == pytest.approx(3 * 11)


async def test_calls_of_this_process_are_counted_once(tmp_path: Path) -> None:
    budget = Budget(max_calls=4)
    async with Loopback() as server:
        graph, model = team_with_a_person(server.url, budget)
        journal = Journal(tmp_path / "runs.jsonl")
        with pytest.raises(RunPaused):
            await graph.run(SCREEN, run_id="r", journal=journal)
        await graph.resume("r", {"person": "yes"}, journal=journal)
        await graph.run(SCREEN, run_id="r", journal=journal)
        await model.close()
    assert budget.calls == len(server.requests) == 4


@pytest.mark.parametrize("written", [True, False], ids=["ended", "killed"])
def test_the_budget_of_an_evaluation_continues_when_it_is_resumed(
    shell: Shell, written: bool
) -> None:
    with in_a_thread(Loopback()) as server:
        line = f"eval {LAMP} -n 6 -j 1 --model tiny --url {server.url} model.max_calls=3"
        first = shell(f"{line} run.report=false --out r")
        assert first.code == 4 and len(server.requests) == 3
        if not written:  # as after a kill: only the traces tell what was spent
            (shell.folder / "r/spent.json").unlink(missing_ok=True)
        again = shell("eval --resume r --trust -j 1")
        assert again.code == 4 and len(server.requests) == 3
        rest = shell("eval --resume r --trust -j 1 model.max_calls=6 --json")
        assert rest.code == 0 and rest.json["plans"][0]["episodes"] == 6
        assert len(server.requests) == 6


_SMALL = (
    "--iterations 2 --rollouts 2 --agents 2 --rounds 1 train.shared_iterations=1 "
    "train.update.steps=1 train.update.batch_size=2 "
    "train.rank=2 env.max_steps=2 train.guide=0.0"
)


def test_the_budget_of_a_critic_continues_when_a_training_is_resumed(shell: Shell) -> None:
    pytest.importorskip("peft")
    with in_a_thread(Loopback()) as server:
        critic = f"--critic llm critic.model=tiny critic.model.url={server.url}"
        first = shell(f"train phone {_SMALL} {critic} critic.model.max_calls=3 --out t")
        assert first.code == 4 and len(server.requests) == 3
        again = shell("train --resume t --trust")
        assert again.code == 4 and len(server.requests) == 3
        more = shell("train --resume t --trust critic.model.max_calls=5")
        assert more.code == 4 and 3 < len(server.requests) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("written", [True, False], ids=["ended", "killed"])
def test_the_budget_of_an_actor_continues_when_a_training_is_resumed(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory, written: bool
) -> None:
    pytest.importorskip("peft")
    from tiny_causal import reads_alike, saved

    learner = saved(tmp_path_factory.mktemp("model"))
    with StandIn("served", tokens=reads_alike(learner)) as server:
        line = f"train phone model.actor.url={server.address}/v1 --model {learner} {_SMALL}"
        whole = shell(f"{line} model.actor.max_calls=10 --out t")
        assert whole.code == 4 and len(server.asked) == 10  # in the second iteration
        if not written:  # as after a kill: the measurements tell what finished iterations spent
            (shell.folder / "t/spent.json").unlink()
        again = shell("train --resume t --trust")
        # Of an iteration that was killed, nothing is known: it is played again.
        assert again.code == 4 and len(server.asked) == (10 if written else 12)
