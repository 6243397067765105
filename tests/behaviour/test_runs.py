"""Runs of graphs: how they fail, resume, spend a budget, end their rounds and are traced."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401
from loopback import Loopback, Reply
from tokenizers import ByteLevelBPETokenizer

from swarm_ui import (
    Action,
    AgentNode,
    Ask,
    Budget,
    BudgetExceeded,
    ChatMessage,
    CollabGraph,
    Completion,
    ConfigError,
    DirectoryStore,
    Element,
    GraphPolicy,
    Limits,
    MajorityVote,
    Message,
    ModelError,
    ModelUnavailable,
    Node,
    NodeContext,
    NodeError,
    Observation,
    Price,
    ReplyError,
    Request,
    RunFailed,
    RunPaused,
    Step,
    Trace,
    function_node,
    rollout_many,
)
from swarm_ui.nodes import OpenAIModel

SCREEN = Observation(goal="press", elements=(Element(index=0, role="button", text="OK"),))


class Failing:
    """A model that raises for the adapters named, and clicks for all others."""

    name = "failing"

    def __init__(self, error: Exception, *adapters: str | None) -> None:
        self.error: Exception | None = error
        self.adapters = adapters

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        if self.error is not None and any(r.adapter in self.adapters for r in requests):
            raise self.error
        text = Action(action_type="click", index=0).json()
        return [Completion(text=text, prompt="p", adapter=r.adapter) for r in requests]


class OneScreen:
    """An environment of three steps with a reward at the end."""

    name = "one-screen"

    def __init__(self) -> None:
        self.taken: list[Action] = []

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.taken = []
        return SCREEN

    async def step(self, action: Action) -> Step:
        self.taken.append(action)
        return Step(observation=SCREEN, reward=1.0, terminated=len(self.taken) == 3)

    async def close(self) -> None: ...


def team(model: Failing, *adapters: str | None) -> CollabGraph:
    agents = [AgentNode(f"agent_{k}", model, adapter=name) for k, name in enumerate(adapters)]
    edges = [(agent.id, "vote") for agent in agents]
    return CollabGraph([*agents, MajorityVote()], edges)


# -- failures ------------------------------------------------------------------------------------


def test_a_run_in_which_every_call_failed_raises_the_first_failure() -> None:
    cause = ModelError("no key in OPENAI_API_KEY")
    graph = team(Failing(cause, "a", "b"), "a", "b")
    with pytest.raises(RunFailed, match=r"agent_0.*monday.*no key in OPENAI_API_KEY") as failed:
        graph.run_sync(SCREEN, run_id="monday")
    error = failed.value
    assert isinstance(error, NodeError)
    assert (error.node, error.round, error.run, error.kind) == ("agent_0", 0, "monday", "model")
    assert error.__cause__ is cause
    trace = error.partial
    assert isinstance(trace, Trace) and len(trace.calls) == 3 and trace.action is None


async def test_the_stream_of_a_run_in_which_every_call_failed_raises_too() -> None:
    graph = team(Failing(ModelUnavailable("busy"), "a"), "a")
    with pytest.raises(RunFailed, match="busy") as failed:
        async for _ in graph.stream(SCREEN):
            pass
    assert failed.value.kind == "unavailable"


def test_one_of_several_failures_is_data() -> None:
    graph = team(Failing(ModelError("down"), "a"), "a", "b")
    trace = graph.run_sync(SCREEN)
    assert trace.action == Action(action_type="click", index=0)
    assert [call.error is not None for call in trace.calls] == [True, False, False]


def test_a_failed_node_whose_successor_answers_is_data() -> None:
    @function_node
    def broken(inbox: Sequence[Message], context: NodeContext) -> str:
        raise ValueError("no")

    @function_node
    def careful(inbox: Sequence[Message], context: NodeContext) -> str:
        return "told: " + str(inbox[0].error)

    trace = CollabGraph([broken, careful], [("broken", "careful")]).run_sync("a goal")
    assert trace.output == "told: ValueError: no"


def test_a_nested_graph_counts_by_the_nodes_inside_it() -> None:
    inner = team(Failing(ModelError("down"), "a", "b"), "a", "b").named("inner")
    with pytest.raises(RunFailed, match=r"inner/agent_0.*down"):
        CollabGraph([inner]).run_sync(SCREEN)
    inner = team(Failing(ModelError("down"), "a"), "a", "b").named("inner")
    assert CollabGraph([inner]).run_sync(SCREEN).action is not None


def test_unusable_replies_alone_are_no_failure() -> None:
    class Talker(Failing):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            return [Completion(text="hm", prompt="p") for _ in requests]

    trace = team(Talker(ModelError("unused")), "a").run_sync(SCREEN)
    assert trace.action is None and trace.calls[0].error is None


async def test_a_replay_returns_the_trace_also_if_no_node_succeeds() -> None:
    graph = team(Failing(ModelError("down"), "a"), "a", "b")
    trace = await graph.run(SCREEN)
    worse = await graph.replay(
        trace, nodes={"agent_1": AgentNode("agent_1", graph["agent_0"].model, "a")}
    )
    assert worse.action is None
    assert await graph.replay(trace) == trace


def test_a_stored_run_in_which_every_call_failed_is_made_again(tmp_path: Path) -> None:
    model = Failing(ModelError("no key"), "a")
    graph = team(model, "a")
    for _ in range(2):
        with pytest.raises(RunFailed), DirectoryStore(tmp_path) as store:
            graph.run_sync(SCREEN, run_id="r", store=store)
    model.error = None
    with DirectoryStore(tmp_path) as store:
        assert [kept.finished for kept in store.runs()] == [False]
        assert graph.run_sync(SCREEN, run_id="r", store=store).action is not None
        assert [kept.finished for kept in store.runs()] == [True]


def test_abort_raises_at_the_first_failure() -> None:
    graph = team(Failing(ModelError("down"), "a"), "a", "b")
    with pytest.raises(NodeError, match="down") as failed:
        graph.run_sync(SCREEN, limits=Limits(on_failure="abort"))
    assert not isinstance(failed.value, RunFailed)


async def test_in_episodes_a_failure_of_all_agents_is_a_fault_and_never_reward_0() -> None:
    policy = GraphPolicy(team(Failing(ModelUnavailable("down"), "a", "b"), "a", "b"))
    [episode] = await rollout_many(OneScreen, policy, [("t", 1)], retry=False)
    assert episode.success is None and not episode.steps
    assert episode.fault is not None and episode.fault.kind == "unavailable"


async def test_in_episodes_unusable_replies_of_all_agents_cost_a_step() -> None:
    policy = GraphPolicy(team(Failing(ReplyError("nothing in it"), "a", "b"), "a", "b"))
    [episode] = await rollout_many(OneScreen, policy, [("t", 1)], retry=False)
    assert episode.fault is None and len(episode.steps) == 3
    assert all(step.executed == Action(action_type="wait") for step in episode.steps)


# -- rounds that end early -----------------------------------------------------------------------


def rounds_of_a_critic(critic: Node, rounds: int = 5) -> CollabGraph:
    """A writer and a critic, until the critic's newest message says that it is good."""

    @function_node
    def writer(inbox: Sequence[Message], context: NodeContext) -> str:
        return f"draft {context.round}"

    def good(newest: Mapping[str, Message]) -> bool:
        return bool(json.loads(newest["critic"].content)["good"])

    return CollabGraph(
        [writer, critic], [("writer", "critic")], "critic", rounds=rounds, until=good
    )


@function_node(id="critic")
def strict_critic(inbox: Sequence[Message], context: NodeContext) -> str:
    return json.dumps({"good": context.round == 2})


def test_until_that_reads_a_failed_node_reports_the_failure_of_the_node() -> None:
    @function_node(id="critic")
    def broken(inbox: Sequence[Message], context: NodeContext) -> str:
        raise ModelUnavailable("the endpoint is busy")

    with pytest.raises(NodeError, match="the endpoint is busy") as failed:
        rounds_of_a_critic(broken).run_sync("a letter", run_id="r")
    error = failed.value
    assert (error.node, error.round, error.run, error.kind) == ("critic", 0, "r", "unavailable")
    assert "good" in str(error), "the function is named too"


def test_until_that_fails_by_itself_is_an_error_of_the_configuration() -> None:
    @function_node(id="critic")
    def chatty(inbox: Sequence[Message], context: NodeContext) -> str:
        return "well done"

    with pytest.raises(ConfigError, match="good"):
        rounds_of_a_critic(chatty).run_sync("a letter")


def test_with_rounds_keeps_until() -> None:
    graph = rounds_of_a_critic(strict_critic)
    assert graph.run_sync("a letter").rounds == 3
    assert graph.with_rounds(6).until is graph.until
    assert graph.with_rounds(6).run_sync("a letter").rounds == 3
    assert graph.with_rounds(2).run_sync("a letter").rounds == 2
    assert graph.with_rounds(6, until=None).run_sync("a letter").rounds == 6
    assert graph.with_rounds(6, until=lambda newest: True).run_sync("a letter").rounds == 1


# -- traces --------------------------------------------------------------------------------------


def test_the_decision_of_a_call_is_found_by_the_id_of_its_message() -> None:
    model = Failing(ModelError("unused"))
    agents = [AgentNode("a", model), AgentNode("b", model)]
    trace = CollabGraph(agents, [("a", "b")]).run_sync(SCREEN)
    assert trace.decision("b:0") == trace.decision(trace.calls[1])
    assert [heard.sender for heard in trace.decision("b:0").heard] == ["a"]
    with pytest.raises(KeyError, match="b:0"):
        trace.decision("b:1")


# -- budgets -------------------------------------------------------------------------------------

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

    request = Request(chat=(ChatMessage("user", text),), max_tokens=100)
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


@pytest.mark.parametrize("reported", [True, False], ids=["reported", "not-reported"])
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


@pytest.mark.parametrize("kept", ["store", "trace"])
async def test_a_budget_counts_what_a_resumed_run_spent_before(kept: str, tmp_path: Path) -> None:
    prices = {"tiny": Price(prompt=1e6, completion=0)}
    async with Loopback() as server:
        graph, model = team_with_a_person(server.url, Budget(max_calls=3))
        with DirectoryStore(tmp_path) as store, pytest.raises(RunPaused) as paused:
            await graph.run(SCREEN, run_id="r", store=store)
        await model.close()
        assert len(server.requests) == 2
        # What follows happens in another process, whose budget has counted nothing.
        budget = Budget(max_calls=3, prices=prices)
        graph, model = team_with_a_person(server.url, budget)
        with DirectoryStore(tmp_path) as store, pytest.raises(BudgetExceeded, match="max_calls"):
            if kept == "store":
                await graph.resume("r", {"person": "yes"}, store=store)
            else:
                await graph.resume(paused.value.partial, {"person": "yes"})
        await model.close()
    assert len(server.requests) == 3 == budget.calls
    assert budget.tokens == 3 * 18 and budget.cost == pytest.approx(3 * 11)


async def test_calls_of_this_process_are_counted_once(tmp_path: Path) -> None:
    budget = Budget(max_calls=4)
    async with Loopback() as server:
        graph, model = team_with_a_person(server.url, budget)
        with DirectoryStore(tmp_path) as store:
            with pytest.raises(RunPaused):
                await graph.run(SCREEN, run_id="r", store=store)
            await graph.resume("r", {"person": "yes"}, store=store)
            await graph.run(SCREEN, run_id="r", store=store)
        await model.close()
    assert budget.calls == len(server.requests) == 4


@contextmanager
def serving() -> Iterator[Loopback]:
    """A server for commands, which have an event loop of their own, in another thread."""
    ready, stop = Future[Loopback](), threading.Event()

    async def serve() -> None:
        async with Loopback() as server:
            ready.set_result(server)
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield ready.result(timeout=30)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("written", [True, False], ids=["ended", "killed"])
def test_the_budget_of_an_evaluation_continues_when_it_is_resumed(
    shell: Shell,  # noqa: F811
    written: bool,
) -> None:
    with serving() as server:
        line = f"run {LAMP} -n 6 -j 1 --model tiny --url {server.url} --set model.max_calls=3"
        first = shell(f"{line} --set run.report=false --out r")
        assert first.code == 4 and len(server.requests) == 3
        if not written:  # as after a kill: only the traces tell what was spent
            (shell.folder / "r/spent.json").unlink()
        again = shell("run --resume r --trust -j 1")
        assert again.code == 4 and len(server.requests) == 3
        rest = shell("run --resume r --trust -j 1 --set model.max_calls=6 --json")
        assert rest.code == 0 and rest.json["plans"][0]["episodes"] == 6
        assert len(server.requests) == 6
