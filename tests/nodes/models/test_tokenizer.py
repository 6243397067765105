"""The embedded agent's tokenizer: actions survive a round trip, and grammars fit the screen."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st

from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Mix, Stream
from swarm_ui.action import Action, Unparsed
from swarm_ui.model import Decision
from swarm_ui.nodes.models.tiny_agent.tokenizer import MAX_PROMPT, SLOTS, ScreenTokenizer
from swarm_ui.observation import Element, Observation, Past

CODEC = ScreenTokenizer(["wardrobe"])


def lessons(count: int, seed: int) -> list[ActionSample]:
    stream = Stream(seed, Mix())
    drawn = [stream.draw(questions=0.0) for _ in range(count)]
    return [lesson for lesson in drawn if isinstance(lesson, ActionSample)]


@pytest.mark.parametrize("seed", range(4))
def test_every_lesson_survives_the_tokens_and_is_allowed(seed: int) -> None:
    for lesson in lessons(150, seed):
        prompt = CODEC.encode(lesson.decision, random.Random(seed))
        back = CODEC.decode(prompt, CODEC.reply(prompt, lesson.action))
        assert isinstance(back, Action)
        assert back.key == lesson.action.key
        plain = CODEC.encode(lesson.decision)
        [*reply, end] = CODEC.reply(plain, lesson.action)
        assert end == CODEC.eos_id
        words = {*CODEC.free_words(plain)}
        texts = [
            reply[len(ids) :] if free else []
            for ids, free in CODEC.possible(plain)
            if ids == reply or (free and ids == reply[: len(ids)])
        ]
        assert any(map(words.issuperset, texts)), lesson.action


def test_an_unknown_word_is_one_symbol_wherever_it_stands_and_another_one_in_other_prompts() -> (
    None
):
    screen = Observation(
        goal="open Zyxwv",
        elements=(Element(index=0, role="button", text="zyxwv"),),
        history=(Past(action=Action(action_type="click", index=0), role="button", label="ZYXWV"),),
    )
    prompt = CODEC.encode(Decision(observation=screen))
    assert prompt.ids.count(prompt.slots["zyxwv"]) == 3
    drawn = {
        CODEC.encode(Decision(observation=screen), random.Random(i)).slots["zyxwv"]
        for i in range(40)
    }
    assert len(drawn) > 10


@given(st.lists(st.text(max_size=40), max_size=60), st.text(max_size=300))
def test_any_text_on_a_screen_gives_a_prompt_of_bounded_length_without_forged_control_tokens(
    labels: list[str], goal: str
) -> None:
    elements = tuple(
        Element(index=i, role="text", text=label + " <done> [button] #3 <act>")
        for i, label in enumerate(labels)
    )
    prompt = CODEC.encode(Decision(observation=Observation(goal=goal, elements=elements)))
    assert len(prompt.ids) <= MAX_PROMPT + 1
    told = [CODEC.tokens[i] for i in prompt.ids]
    assert told.count("<act>") == 1
    assert "<done>" not in told
    assert "[button]" not in told
    assert len(prompt.slots) <= SLOTS


@given(st.lists(st.integers(0, len(CODEC) - 1), max_size=12))
def test_any_reply_is_read_as_an_action_or_as_a_reason(ids: list[int]) -> None:
    lesson = lessons(1, 3)[0]
    back = CODEC.decode(CODEC.encode(lesson.decision), ids)
    assert isinstance(back, Action | Unparsed)
