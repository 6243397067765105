"""How models are called: what requests contain, what servers refuse, and what is retried."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, RIGHT, Shell
from local_models import untrained
from loopback import Loopback, Reply, failing
from loopback_client import ask, no_proxy  # noqa: F401
from tiny_causal import causal, screen
from vllm_stand_in import StandIn

from swarm_ui import Budget, CollabGraph, ModelError, Request
from swarm_ui.nodes import ActorModel, AgentNode, ChatNode, ChatOptions, OpenAIModel

SCREEN = screen().observation
GREEDY = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
    "value is supported."
)
RENAMED = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)
SEEDED = "seed: Extra inputs are not permitted"
TOO_LONG = (
    "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum context "
    "length is 64 tokens and your request has 50 input tokens"
)
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def client(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("tiny", url, **settings)


def bodies(server: Loopback) -> list[dict[str, Any]]:
    return [seen.body for seen in server.requests]


# -- what a request contains ---------------------------------------------------------------------


async def test_a_request_contains_only_what_the_user_chose() -> None:
    async with Loopback() as server:
        model = client(server.url)
        await CollabGraph.collaborative(agents=2, rounds=1, model=model).run(SCREEN)
        await CollabGraph.solo(model).run(SCREEN)
        await CollabGraph([ChatNode("writer", model)]).run("a letter")
        await CollabGraph([AgentNode("ada", model, temperature=None)]).run(SCREEN)
        await model.generate([ask()])
        await model.close()
    assert len(server.requests) == 6
    assert {frozenset(body) for body in bodies(server)} == {frozenset({"model", "messages"})}


async def test_what_the_user_chose_is_sent() -> None:
    async with Loopback() as server:
        options = ChatOptions(send_seed=True, token_field="max_completion_tokens")
        model = client(server.url, options=options)
        await CollabGraph.collaborative(
            agents=2, rounds=1, model=model, temperature=(None, 0.7), max_tokens=64
        ).run(SCREEN, seed=3)
        await CollabGraph([ChatNode("writer", model, temperature=0.0, max_tokens=9)]).run(
            "a letter"
        )
        await model.close()
    first, second, chat = bodies(server)
    heats = sorted(body.get("temperature", -1) for body in (first, second))
    assert heats == [-1, 0.7] and chat["temperature"] == 0.0
    assert [body["max_completion_tokens"] for body in bodies(server)] == [64, 64, 9]
    assert len({body["seed"] for body in bodies(server)}) == 3


async def test_a_budget_of_tokens_limits_each_reply() -> None:
    """A reply without a limit could exceed the budget."""
    async with Loopback() as server:
        for budget in (Budget(max_tokens=9_000), Budget(max_calls=2)):
            model = client(server.url, budget=budget)
            await model.generate([ask()])
            await model.close()
    limited, unlimited = bodies(server)
    assert limited["max_tokens"] > 0 and "max_tokens" not in unlimited


def test_the_command_line_sends_what_was_chosen(shell: Shell) -> None:
    seen: list[Mapping[str, Any]] = []

    def reply(body: Mapping[str, Any]) -> str:
        seen.append(body)
        return RIGHT

    with StandIn("tiny", reply=reply) as server:
        line = f"eval {LAMP} light --model tiny --url {server.address}/v1"
        plain = shell(f"{line} --out plain")
        chosen = shell(
            f"{line} --out chosen team.temperature=0.5 team.max_tokens=64 "
            "model.token_field=max_completion_tokens model.send_seed=true"
        )
    assert plain.code == chosen.code == 0, plain.err + chosen.err
    first, second = seen
    assert set(first) == {"model", "messages"}
    assert set(second) - set(first) == {"temperature", "max_completion_tokens", "seed"}
    assert (second["temperature"], second["max_completion_tokens"]) == (0.5, 64)


# -- models of this process ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [untrained, lambda: causal("llama")], ids=["tiny", "causal"])
async def test_without_a_temperature_a_model_of_this_process_is_greedy(make: Any) -> None:
    replies = []
    for given in ({}, {"temperature": None}, {"temperature": 0.0}):
        model = make()
        asked = Request(decision=screen(), seed=5, max_tokens=12, **given)
        replies += await model.generate([asked])
    assert replies[0] == replies[1] == replies[2]


async def test_a_served_actor_samples_as_its_learner_does(tmp_path: Path) -> None:
    """The learner is greedy without a temperature, and the server's own may be another."""
    seen: list[Mapping[str, Any]] = []
    learner = causal("llama")
    learner.add_adapter("agent_0", rank=2, alpha=4)
    with StandIn("base", reply=lambda body: seen.append(body) or RIGHT) as server:
        engine = OpenAIModel("base", f"{server.address}/v1", options=ChatOptions(send_seed=True))
        model = ActorModel(engine, learner, tmp_path)
        await model.generate([Request(decision=screen(), adapter="agent_0", seed=4)])
        await model.close()
    (body,) = seen
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.0, 256, 4)


# -- what a server refuses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "told", "setting"),
    [
        ("temperature", GREEDY, "temperature"),
        ("max_tokens", RENAMED, "token_field"),
        ("seed", SEEDED, "send_seed"),
    ],
)
async def test_a_field_that_a_server_does_not_support_is_left_out(
    field: str, told: str, setting: str
) -> None:
    async with Loopback(lambda body: failing(400, told) if field in body else Reply()) as server:
        model = client(server.url, options=ChatOptions(send_seed=True))
        node = AgentNode("ada", model, temperature=0.0, max_tokens=64)
        with pytest.warns(UserWarning) as said:
            for _ in range(2):
                trace = await CollabGraph([node]).run(SCREEN)
                assert trace.messages[0].error is None and trace.action is not None
        await model.close()
        other = client(server.url)
        await other.generate([ask()])
        await other.close()
    (warning,) = said
    assert field in str(warning.message) and setting in str(warning.message)
    rest = {"model", "messages", "temperature", "max_tokens", "seed"} - {field}
    assert [set(body) for body in bodies(server)] == [
        {*rest, field}, rest, rest, {"model", "messages"}
    ]  # fmt: skip


async def test_fields_that_are_refused_one_after_the_other_are_all_left_out() -> None:
    def answer(body: dict[str, Any]) -> Reply:
        told = (("max_tokens", RENAMED), ("temperature", GREEDY), ("seed", SEEDED))
        return next((failing(400, text) for field, text in told if field in body), Reply())

    async with Loopback(answer) as server:
        model = client(server.url, options=ChatOptions(send_seed=True))
        with pytest.warns(UserWarning) as said:
            await model.generate([ask(temperature=0.0, max_tokens=9)])
        copy = pickle.loads(pickle.dumps(model))
        await copy.generate([ask(temperature=0.0, max_tokens=9)])
        await model.close()
        await copy.close()
    assert len(said) == 3
    assert [len(body) for body in bodies(server)] == [5, 4, 3, 2, 2]


async def test_a_value_that_a_server_refuses_is_an_error_that_names_the_setting() -> None:
    wrong = failing(400, "temperature must be between 0 and 2, got 3.0")
    async with Loopback([wrong, failing(400, TOO_LONG)]) as server:
        model = client(server.url)
        with pytest.raises(ModelError, match=r"\[team\] temperature"):
            await model.generate([ask(temperature=3.0)])
        with pytest.raises(ModelError, match="max_tokens"):
            await model.generate([ask(max_tokens=256)])
        await model.generate([ask(temperature=1.0, max_tokens=9)])
        await model.close()
    assert {"temperature", "max_tokens"} <= set(bodies(server)[-1])


async def test_within_a_budget_of_tokens_the_limit_of_a_reply_is_not_left_out() -> None:
    async with Loopback(
        lambda body: failing(400, RENAMED) if "max_tokens" in body else Reply()
    ) as server:
        model = client(server.url, budget=Budget(max_tokens=9_000))
        with pytest.raises(ModelError, match="token_field"):
            await model.generate([ask()])
        await model.close()
    assert len(server.requests) == 1


async def test_a_schema_that_a_server_refuses_disables_no_other() -> None:
    def answer(body: dict[str, Any]) -> Reply:
        asked = body.get("response_format", {}).get("json_schema", {}).get("schema")
        if asked == POINT:
            return failing(400, "Invalid schema for response_format 'reply': integer is unknown")
        return Reply('{"name": "ada"}' if asked == NAME else '{"x": 1}')

    async with Loopback(answer) as server:
        model = client(server.url)
        for schema in (POINT, NAME, POINT):
            (done,) = await model.generate([ask(json_schema=json.dumps(schema))])
            assert done.text == ('{"name": "ada"}' if schema is NAME else '{"x": 1}')
        await model.close()
    formats = ["response_format" in body for body in bodies(server)]
    assert formats == [True, False, True, False]
    assert '"integer"' in str(bodies(server)[-1]["messages"])  # it is in the prompt instead
