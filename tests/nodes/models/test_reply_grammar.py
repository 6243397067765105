"""Constrained decoding of text models: every reply is an action that is possible on the screen."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import torch
from local_models import answers, requests
from tiny_causal import network, screen, tokenizer
from tokenizers import pre_tokenizers

from swarm_ui.action import Abstain, Action
from swarm_ui.errors import ModelError
from swarm_ui.message import Heard
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.decoding import generate
from swarm_ui.nodes.models.transformers.grammar import ReplyGrammars, token_texts
from swarm_ui.nodes.models.transformers.scoring import token_logprobs
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import FreeText, Reply, format_named

LABELS = (
    "Save",
    "Save as",
    "Save [1]",
    "naïve café",
    'say "hi"',
    "a\\b",
    "</s>",
    "日本",
    "",
    "[2]",
)


def model(form: str, **settings: Any) -> CausalModel:
    words = tokenizer()
    return CausalModel(network("llama", len(words)), words, prompt_format=form, **settings)


def strange() -> Decision:
    """Labels that are hard to tell apart or to write."""
    elements = [
        Element(index=k, role="field" if k % 3 == 0 else "button", text=label, editable=k % 3 == 0)
        for k, label in enumerate(LABELS)
    ]
    return Decision(observation=Observation(goal="save it", elements=tuple(elements)))


def partial() -> Decision:
    """A part of a screen, and a colleague who names something outside of it."""
    said = Action(action_type="click", target="far away", index=7)
    heard = Heard(sender="agent_1", round=0, content=said.json(), action=said, own=False)
    return Decision(observation=screen().observation, heard=(heard,), partial=True)


def asked(count: int, **settings: Any) -> list[Request]:
    """Decisions of many kinds, greedy and sampled."""
    made = [strange(), partial(), *(r.decision for r in requests(count) if r.decision)]
    return [
        Request(decision=d, seed=k, temperature=(0.0, 1.0, 5.0)[k % 3], **settings)
        for k, d in enumerate(made)
    ]


def possible(reply: str, decision: Decision, form: str) -> bool:
    """Whether a reply is one action that the screen offers."""
    seen = decision.observation
    action = format_named(form).parse(reply, seen, partial=decision.partial)
    if isinstance(action, Abstain):
        return decision.partial
    if not isinstance(action, Action):
        return False
    named = {h.action.index for h in decision.heard if h.action is not None}
    element = seen.element(action.index)
    if action.index is not None and (element is None or not element.enabled):
        return decision.partial and action.index in named
    return action.action_type != "input_text" or (element is not None and element.editable)


def completed(form: str, asked: Sequence[Request], **settings: Any) -> list[Completion]:
    return answers(model(form, constrained=True, **settings), asked)


@pytest.mark.parametrize("form", ["compact", pytest.param("json", marks=pytest.mark.slow)])
def test_every_reply_is_an_action_that_is_possible(form: str) -> None:
    questions = asked(24, max_tokens=200)
    for request, completion in zip(questions, completed(form, questions), strict=True):
        assert request.decision is not None
        assert possible(completion.text, request.decision, form), completion.text


def test_an_agent_with_a_pane_may_say_one_line_before_it_passes() -> None:
    row = Element(index=0, role="item", text="ana", value="phone 555-1234", pane="contacts")
    pane = Decision(
        observation=Observation(goal="send the phone of ana", elements=(row,)), partial=True
    )
    sampled = [Request(decision=pane, seed=k, temperature=5.0, max_tokens=120) for k in range(8)]
    said = [completion.text for completion in completed("compact", sampled)]
    assert all(possible(reply, pane, "compact") for reply in said)
    messages = [reply for reply in said if reply.endswith("\npass")]
    assert messages and all(reply.count("\n") == 1 for reply in messages)


def test_compact_replies_are_constrained_by_default_and_json_replies_are_not() -> None:
    question = Request(decision=strange(), max_tokens=30, temperature=5.0)
    for form, bound in (("compact", True), ("json", False)):
        [completion] = answers(model(form), [question])
        assert possible(completion.text, strange(), form) == bound
    [free] = answers(model("compact", constrained=False), [question])
    assert not possible(free.text, strange(), "compact")


@pytest.mark.parametrize("form", ["compact", "json"])
def test_the_logprob_is_that_of_the_unconstrained_model(form: str) -> None:
    """Also of the tokens that are read several at a time."""
    bound, questions = model(form, constrained=True), asked(6, max_tokens=200)
    rows = [bound.codec.row(question, bound.prompt(question)) for question in questions]
    for row, new in zip(rows, generate(bound.network, rows, bound.pad_id, [1]), strict=True):
        ids = torch.tensor([[*row.prompt, *new.ids, 1]])
        marks = torch.arange(ids.shape[1])[None] >= len(row.prompt)
        with torch.no_grad():
            [whole] = token_logprobs(bound.network, ids, marks.float()).sum(1).tolist()
        assert new.end is not None
        assert new.logprob == pytest.approx(whole, abs=1e-3)


def test_a_batch_gives_the_replies_of_single_calls() -> None:
    questions = asked(14, max_tokens=120)
    one = model("compact")
    together = answers(one, questions)
    apart = [answers(one, [question])[0] for question in questions]
    assert [c.text for c in together] == [c.text for c in apart]
    for a, b in zip(together, apart, strict=True):
        assert a.logprob == pytest.approx(b.logprob, abs=1e-3)
    assert [c.text for c in answers(one, questions)] == [c.text for c in together]


def test_tokens_without_an_alternative_take_no_forward_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, forwards = model("compact"), list[int]()
    inner = one.network.forward

    def counted(*inputs: Any, **named: Any) -> Any:
        forwards.append(1)
        return inner(*inputs, **named)

    monkeypatch.setattr(one.network, "forward", counted)
    only = Observation(goal="g", elements=screen().observation.elements, actions=("click",))
    [completion] = answers(one, [Request(decision=Decision(observation=only), max_tokens=50)])
    assert completion.text == "click Save [0]"
    assert completion.usage.completion_tokens > 4
    assert len(forwards) == 2  # the prompt, and the whole reply


def grammars(**settings: Any) -> tuple[ReplyGrammars, Any]:
    words = tokenizer()
    texts = token_texts(words, len(words))

    def tokenize(parts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = words(parts, add_special_tokens=False)["input_ids"]
        return ids

    return ReplyGrammars(texts, tokenize, words.eos_token_id, torch.device("cpu")), words


def spelled(replies: list[Reply], room: int, seed: int) -> str:
    """A random walk through the grammar, as text."""
    made, words = grammars()
    cursor, rng, ids = made.compile(replies).begin(room), random.Random(seed), list[int]()
    while len(ids) < 300:
        allowed = cursor.allowed()
        among = set(allowed.ids)
        if allowed.mask is not None and (not among or rng.random() < 0.9):
            among = set(allowed.mask.nonzero()[:, 0].tolist())
        token = rng.choice(sorted(among))
        if token == words.eos_token_id:
            return str(words.decode(ids))
        ids.append(token)
        cursor.take(token)
    raise AssertionError("no end")


@pytest.mark.parametrize("seed", range(12))
def test_an_optional_reason_may_begin_like_an_action(seed: int) -> None:
    actions: list[Reply] = [("click Save",), ("answer", FreeText(5))]
    reasons: list[Reply] = [(FreeText(6), "\n" + str(a[0]), *a[1:]) for a in actions]
    lines = spelled([*actions, *reasons], 100, seed).split("\n")
    assert len(lines) <= 2
    assert lines[-1] == "click Save" or lines[-1].startswith("answer ")
    assert lines[-1] != "answer "
    assert lines[0].strip()


@pytest.mark.parametrize("seed", range(6))
def test_free_text_leaves_room_for_the_rest(seed: int) -> None:
    rest = '", "and this follows": true}'
    text = spelled([('{"text":"', FreeText(200, '\n"\\'), rest)], 60, seed)
    assert text.endswith(rest)
    assert len(tokenizer()(text)["input_ids"]) <= 60


def test_a_text_does_not_end_with_the_space_that_a_tokenizer_puts_before_every_text() -> None:
    made, words = grammars()
    words.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    cursor, ids = made.compile([('say "', FreeText(1), '"')]).begin(50), list[int]()
    while words.eos_token_id not in (allowed := cursor.allowed().ids):
        ids.append(allowed[0] if allowed else words.convert_tokens_to_ids("m"))
        cursor.take(ids[-1])
    assert words.decode(ids) == ' say "m"'


def test_compiled_screens_are_shared_and_few_are_kept() -> None:
    made, _ = grammars()
    replies: list[Reply] = [("click Save [0]",)]
    assert made.compile(replies) is made.compile(list(replies))
    first = made.compile(replies)
    for k in range(300):
        made.compile([(f"click {k}",)])
    assert made.compile(replies) is not first


def test_no_possible_reply_is_an_error() -> None:
    with pytest.raises(ModelError, match="at least one possible reply"):
        grammars()[0].compile([])


def test_a_reply_cut_off_says_so() -> None:
    [completion] = answers(model("compact"), [Request(decision=strange(), max_tokens=2)])
    assert completion.usage.completion_tokens == 2
    assert isinstance(msgspec.to_builtins(completion.text), str)
