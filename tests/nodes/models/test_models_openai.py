"""The endpoint model against a server in this process that misbehaves on command."""

from __future__ import annotations

import asyncio
import json
import traceback
from typing import Any

import msgspec
import pytest
from loopback import GOOD, Loopback, Reply, failing, too_many
from loopback_client import ask, model, no_proxy, one, records  # noqa: F401  (a fixture)

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError
from swarm_ui.model import ChatModel, Decision, Request
from swarm_ui.nodes import OpenAIModel
from swarm_ui.nodes.models.openai.failures import retry_after
from swarm_ui.nodes.models.openai.secrets import without_credentials
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import decision_chat, transcript

SECRET = "sk-very-secret-0123456789"


async def test_sends_the_request_and_returns_the_exact_prompt() -> None:
    screen = Observation(goal="g", elements=(Element(index=0, role="button", text="Save"),))
    decision = Decision(observation=screen)
    schema = {"type": "object"}
    async with Loopback([Reply(logprobs=(-0.5, -0.25))]) as server:
        client = model(server, logprobs=True, send_seed=True, extra_body={"top_k": 5})
        assert isinstance(client, ChatModel)
        request = Request(
            decision=decision,
            temperature=0.7,
            max_tokens=33,
            seed=9,
            json_schema=json.dumps(schema),
        )
        (completion,) = await client.generate([request])
        await client.close()
    body = server.requests[0].body
    assert completion.text == GOOD
    assert completion.prompt == transcript(decision_chat(decision))
    assert [m["content"] for m in body["messages"]] == [t.content for t in decision_chat(decision)]
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.7, 33, 9)
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert body["top_k"] == 5 and body["logprobs"] is True
    assert completion.logprob == pytest.approx(-0.75)
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 7)
    assert client.spent.prompt_tokens == 11 and client.spent.calls == 1


@pytest.mark.parametrize(
    "fault",
    [
        too_many("0"),
        too_many(),
        failing(500),
        failing(503),
        Reply(cut=True),
        Reply(body="<html>"),
        Reply(body='{"choices": []}'),
        Reply(body='{"choices": {"0": "wrong"}}'),
        Reply(body='{"choices": [{"message": {"content": 3}}]}'),
        Reply(body=""),
    ],
    ids=lambda r: f"{r.status}-{r.body or ('cut' if r.cut else '')}"[:24],
)
async def test_tries_again_after_a_passing_fault(fault: Reply) -> None:
    async with Loopback([fault, fault, Reply("good")]) as server:
        client = model(server)
        assert await one(client) == "good"
    assert len(server.requests) == 3
    assert (client.spent.calls, client.spent.retries) == (3, 2)


async def test_a_slow_reply_is_cut_off_and_tried_again() -> None:
    async with Loopback([Reply(delay=30), Reply("good")]) as server:
        assert await one(model(server, timeout=0.3)) == "good"


async def test_waits_as_long_as_the_server_asks_but_no_longer_than_allowed() -> None:
    async with Loopback([too_many("0.2"), Reply("good")]) as server:
        client = model(server)
        assert await one(client) == "good"
    first, second = server.requests
    assert second.at - first.at >= 0.2
    assert client.spent.seconds_waiting >= 0.2
    async with Loopback([too_many("3600")]) as server:
        with pytest.raises(ModelError, match="told to wait 3600 s"):
            await one(model(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (failing(400, "bad temperature"), "HTTP 400 .*bad temperature"),
        (failing(401), "OPENAI_API_KEY"),
        (failing(404), "check the model name"),
        (failing(429, "pay", code="insufficient_quota"), "billing"),
    ],
)
async def test_hopeless_faults_fail_at_once(fault: Reply, says: str) -> None:
    async with Loopback([fault]) as server:
        with pytest.raises(ModelError, match=says):
            await one(model(server))
    assert len(server.requests) == 1


async def test_gives_up_after_the_retries_with_one_line_that_says_all() -> None:
    async with Loopback(lambda body: failing(500, "out\nof memory")) as server:
        with pytest.raises(ModelError) as caught:
            await one(model(server, retries=2))
        message = str(caught.value)
        assert "\n" not in message
        assert server.url in message and "'tiny'" in message and "3 attempts" in message
        assert "expected a chat completion, got HTTP 500" in message and "To do:" in message
    assert len(server.requests) == 3


async def test_missing_usage_and_null_content_are_no_faults() -> None:
    async with Loopback([Reply(None, usage=False)]) as server:
        assert await one(model(server)) == ""
    assert len(server.requests) == 1


async def test_results_keep_the_order_of_requests() -> None:
    def echo(body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"]
        return Reply(text, delay=0.05 if text in "abc" else 0.0)

    async with Loopback(echo) as server:
        client = model(server)
        got = await client.generate([ask(letter) for letter in "abcdef"])
        await client.close()
    assert [c.text for c in got] == list("abcdef")
    assert server.at_once > 1


async def test_no_more_than_the_allowed_requests_at_once() -> None:
    async with Loopback(lambda body: Reply(delay=0.02)) as server:
        client = model(server, concurrency=3)
        await client.generate([ask(str(k)) for k in range(9)])
        await client.close()
    assert server.at_once == 3


async def test_no_more_than_the_rate_in_any_period() -> None:
    async with Loopback() as server:
        client = model(server, requests=4, period=0.4)
        await client.generate([ask()])  # opens the connection, which takes a while
        await client.generate([ask(str(k)) for k in range(10)])
        await client.close()
    times = sorted(seen.at for seen in server.requests)
    # Eleven requests at four a period take two whole periods; half of it leaves room for delays
    # on the way, and without the limit they take a few hundredths of a second.
    assert times[-1] - times[0] >= 0.4
    assert client.spent.seconds_waiting > 0.0


async def test_one_failure_fails_the_batch_and_stops_the_rest() -> None:
    def reply(body: dict[str, Any]) -> Reply:
        bad = body["messages"][0]["content"] == "bad"
        return failing(400) if bad else Reply(delay=30)

    async with Loopback(reply) as server:
        client = model(server)
        with pytest.raises(ModelError, match="HTTP 400"):
            await asyncio.wait_for(client.generate([ask("slow"), ask("bad")]), timeout=10)
        await client.close()


async def test_budget_of_calls_is_checked_before_sending() -> None:
    async with Loopback() as server:
        client = model(server, max_calls=2)
        await client.generate([ask()])
        await client.generate([ask()])
        with pytest.raises(BudgetExceeded, match="all 2 calls"):
            await client.generate([ask()])
        await client.close()
    assert len(server.requests) == 2


async def test_retries_count_as_calls() -> None:
    async with Loopback(lambda body: failing(500)) as server:
        with pytest.raises(BudgetExceeded):
            await one(model(server, max_calls=2, retries=9))
    assert len(server.requests) == 2


async def test_budget_of_tokens_is_never_crossed_even_by_concurrent_calls() -> None:
    async with Loopback() as server:
        client = model(server, max_tokens=100)
        with pytest.raises(BudgetExceeded, match="max_tokens"):
            await client.generate([ask(max_tokens=40), ask(max_tokens=40), ask(max_tokens=40)])
        assert client.spent.calls == 2
        with pytest.raises(BudgetExceeded):
            await client.generate([ask(max_tokens=101)])
        await client.close()
    assert len(server.requests) <= 2


async def test_what_a_call_did_not_use_is_free_again() -> None:
    async with Loopback([failing(400)]) as server:
        client = model(server, max_tokens=105)
        with pytest.raises(ModelError, match="HTTP 400"):
            await client.generate([ask(max_tokens=90)])
        for _ in range(4):  # 18 tokens each, though up to 49 are held
            await client.generate([ask(max_tokens=40)])
        with pytest.raises(BudgetExceeded, match="72 are used and 0 are reserved"):
            await client.generate([ask(max_tokens=40)])
        await client.close()


async def test_a_server_that_does_not_count_spends_what_was_held() -> None:
    async with Loopback(lambda body: Reply(usage=False)) as server:
        client = model(server, max_tokens=100)
        await client.generate([ask(max_tokens=80)])
        with pytest.raises(BudgetExceeded):
            await client.generate([ask(max_tokens=80)])
        await client.close()


async def test_adapters_are_asked_for_by_their_served_names() -> None:
    names = {"agent_0": "agent_0@3"}
    async with Loopback() as server:
        client = model(server, adapter_names=names)
        (first,) = await client.generate([ask(adapter="agent_0")])
        names["agent_0"] = "agent_0@4"
        await client.generate([ask(adapter="agent_0")])
        with pytest.raises(ModelError, match="expected one of the adapters: agent_0; got 'other'"):
            await client.generate([ask(adapter="other")])
        await client.close()
        plain = model(server)
        await plain.generate([ask(adapter="other"), ask()])
        await plain.close()
    assert first.adapter == "agent_0@3"
    asked = [seen.body["model"] for seen in server.requests]
    assert asked == ["agent_0@3", "agent_0@4", "other", "tiny"]


async def test_the_key_is_sent_but_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET + "\n")
    fault = failing(401, f"Incorrect API key provided: {SECRET}")
    async with Loopback([Reply(), fault, Reply(body=SECRET)]) as server:
        client = model(server, api_key_env="MY_KEY", retries=0)
        (completion,) = await client.generate([ask()])
        shown = [repr(client), repr(completion), repr(client.spent)]
        for _ in range(2):
            with pytest.raises(ModelError) as caught:
                await client.generate([ask()])
            shown += traceback.format_exception(caught.value)
        await client.close()
    assert server.requests[0].authorization == f"Bearer {SECRET}"
    assert not any(SECRET in text for text in shown)
    assert any("MY_KEY" in text for text in shown)


async def test_a_key_that_cannot_be_a_header_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a\u2026 b")
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        await one(model("http://127.0.0.1:9/v1"))
    assert "sk-a" not in "".join(traceback.format_exception(caught.value))


async def test_credentials_in_the_address_are_never_shown() -> None:
    client = model("http://user:pa55word@127.0.0.1:9/v1?token=abc", retries=0)
    with pytest.raises(ModelError) as caught:
        await one(client)
    shown = repr(client) + "".join(traceback.format_exception(caught.value))
    assert "pa55word" not in shown and "token=abc" not in shown and "127.0.0.1:9/v1" in shown
    assert without_credentials("https://u:p@h:1/v1/?q#f") == "https://h:1/v1"


async def test_a_query_of_the_address_is_sent_with_every_request_and_never_shown() -> None:
    echo = failing(400, "no user of /v1?key=abcdefghij%2Fk, key abcdefghij/k")
    async with Loopback([Reply(), echo]) as server:
        client = model(f"{server.url}?key=abcdefghij%2Fk&version=2", retries=0)
        await one(client)
        with pytest.raises(ModelError, match="no user of") as caught:
            await one(client)
        await client.close()
    paths = [request.path for request in server.requests]
    assert paths == ["/v1/chat/completions?key=abcdefghij%2Fk&version=2"] * 2
    assert "abcd" not in "".join(traceback.format_exception(caught.value))


async def test_an_adapter_that_is_served_under_its_own_name_keeps_it() -> None:
    async with Loopback() as server:
        client = model(server)
        [reply] = await client.generate([msgspec.structs.replace(ask(), adapter="phone-v2")])
        await client.close()
    assert (server.requests[0].body["model"], reply.adapter) == ("phone-v2", "phone-v2")


async def test_an_error_with_status_200_is_shown() -> None:
    failed = json.dumps({"error": {"message": "the provider is overloaded", "code": 502}})
    async with Loopback([Reply(body=failed)]) as server:
        with pytest.raises(ModelError, match="the provider is overloaded"):
            await one(model(server, retries=0))


@pytest.mark.parametrize("password", ["zq/xw", "zq?xw", "zq#xw", "12/xw", "zq[xw"])
def test_a_password_that_is_not_encoded_is_never_shown(password: str) -> None:
    address = f"http://me:{password}@host/v1"
    shown = without_credentials(address)
    try:
        shown += repr(model(address))
    except ConfigError as error:  # what seems to be the port is no number
        assert "write %2F for '/'" in str(error) and error.__context__ is None
        shown += str(error)
    assert "zq" not in shown and "xw" not in shown


async def test_a_key_given_as_an_argument_goes_before_the_environment_and_is_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    async with Loopback([failing(401, f"Incorrect API key provided: {SECRET}")]) as server:
        client = model(server, api_key=SECRET)
        with pytest.raises(ModelError, match="api_key") as caught:
            await one(client)
    assert server.requests[0].authorization == f"Bearer {SECRET}"
    assert SECRET not in repr(client) + "".join(traceback.format_exception(caught.value))


async def test_works_without_a_key_on_a_given_address_only() -> None:
    async with Loopback() as server:
        assert await one(model(server)) == GOOD
    with pytest.raises(ModelError, match="environment variable OPENAI_API_KEY, got none"):
        await one(OpenAIModel("gpt-x"))


async def test_check_lists_models_and_names_what_is_wrong() -> None:
    async with Loopback(models=("tiny", "agent_0")) as server:
        client = model(server)
        assert await client.check() == ("tiny", "agent_0")
        await client.close()
    async with Loopback(models=("other",)) as server:
        client = model(server)
        with pytest.raises(
            ModelError, match="not served; expected 'tiny', got these models: other"
        ):
            await client.check()
        await client.close()
    async with Loopback(models_status=404) as server:
        client = model(server)
        assert await client.check() == ()
        await client.close()


async def test_an_unreachable_endpoint_is_one_clear_line() -> None:
    async with Loopback() as server:
        url = server.url
    client = model(url)
    with pytest.raises(ModelError) as caught:
        await client.check()
    await client.close()
    message = str(caught.value)
    assert url in message and "no connection" in message and "\n" not in message
    assert caught.value.__cause__ is None


async def test_a_closed_model_can_be_used_again() -> None:
    async with Loopback() as server:
        client = model(server)
        assert await one(client) == GOOD
        assert await one(client) == GOOD


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests": 0},
        {"concurrency": 0},
        {"retries": -1},
        {"timeout": 0.0},
        {"period": float("nan")},
        {"max_calls": -1},
        {"base_url": "localhost:8000"},
        {"backoff": float("nan")},
        {"tokens_per_minute": 0},
        {"api_key": "  "},
        {"api_key_env": ""},
        {"extra_body": {"top_k": object()}},
        {"max_cost": -0.5},
        {"max_cost": 1.0},
        {"max_cost": float("inf"), "prices": {"tiny": Price(prompt=1, completion=1)}},
        {"prices": {"tiny": 3.0}},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    settings = {"base_url": "http://127.0.0.1:9/v1"} | wrong
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        OpenAIModel("tiny", **records(**settings))


def test_a_model_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="name of a served model"):
        OpenAIModel(" ", "http://127.0.0.1:9/v1")


def test_retry_after_reads_milliseconds_seconds_and_dates() -> None:
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


async def test_models_can_share_a_budget() -> None:
    budget = Budget(max_calls=3)
    async with Loopback() as server:
        first, second = model(server, budget=budget), model(server, budget=budget)
        await first.generate([ask(), ask()])
        await second.generate([ask()])
        with pytest.raises(BudgetExceeded):
            await first.generate([ask()])
        assert (first.spent.calls, second.spent.calls, budget.calls) == (2, 1, 3)
        await first.close()
        await second.close()
