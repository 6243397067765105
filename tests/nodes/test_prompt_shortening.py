"""Prompts within a number of tokens: what is left out, in which order, and that it is said."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.action import Action
from swarm_ui.errors import ModelError
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision, Dropped
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.prompts import FORMATS, FreeText, PromptFormat, shortened

both = pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
words = st.lists(st.sampled_from(["add", "milk", "save", "note", "open", "15"]), max_size=4)
texts = words.map(" ".join)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    count = draw(st.integers(0, 20))
    elements = [
        Element(
            index=k,
            role=draw(st.sampled_from(["button", "field", "item"])),
            text=f"{draw(texts)} {k}",
            editable=draw(st.booleans()),
            focused=draw(st.booleans()),
        )
        for k in range(count)
    ]
    history = [Past(action=Action(action_type="wait"), label=f"past {k}") for k in range(20)]
    heard = [
        Heard(
            sender=f"agent_{k}",
            round=0,
            content=f"{draw(texts)} because {k}\nclick [{k}]",
            action=draw(st.none() | st.just(Action(action_type="click", index=k))),
            prompt_format="compact",
        )
        for k in range(draw(st.integers(0, 3)))
    ]
    return Decision(
        observation=Observation(
            goal=draw(texts),
            elements=tuple(elements),
            history=tuple(history[: draw(st.integers(0, 20))]),
        ),
        heard=tuple(heard),
        partial=draw(st.booleans()),
    )


class Reader:
    """Reads one token for about every three characters, and counts what it reads."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, chat: tuple[ChatMessage, ...]) -> str:
        self.calls += 1
        return "\n".join(turn.content for turn in chat)


def tokens(text: str) -> int:
    return sum(1 + len(word) // 4 for word in re.findall(r"\w+|[^\w\s]", text))


def fitted(form: PromptFormat, decision: Decision, limit: int) -> tuple[Decision, str]:
    return shortened(decision, limit, lambda d: Reader()(form.chat(d)), tokens)


def shown(form: PromptFormat, decision: Decision, prompt: str) -> dict[int, str]:
    """The lines of elements, by index."""
    mark = r"^(\d+): " if form.name == "json" else r"^.* \[(\d+)\] (?:button|field|item)"
    count = len(decision.observation.elements)
    lines = [(re.match(mark, line), line) for line in prompt.splitlines()]
    found = [(int(mark[1]), line) for mark, line in lines if mark is not None]
    return {index: line for index, line in found if index < count}


@both
@settings(max_examples=40, deadline=None)
@given(decision=decisions(), share=st.floats(0, 1.2))
def test_any_screen_fits_any_limit_or_is_refused(
    form: PromptFormat, decision: Decision, share: float
) -> None:
    reader = Reader()
    whole = reader(form.chat(decision))
    limit = int(share * tokens(whole))
    everything = Dropped(
        history=len(decision.observation.history),
        reasons=tuple(range(len(decision.heard))),
        elements=tuple(range(len(decision.observation.elements))),
    )
    least = tokens(reader(form.chat(replaced(decision, everything))))
    if limit < min(least, tokens(whole)):
        with pytest.raises(ModelError, match=f"at most {limit} may be used"):
            fitted(form, decision, limit)
        return
    made, prompt = fitted(form, decision, limit)
    assert tokens(prompt) <= limit
    assert prompt == reader(form.chat(made))
    if tokens(whole) <= limit:
        assert made is decision
        return
    dropped = made.dropped
    assert dropped is not None
    kept = set(range(len(decision.observation.elements))) - set(dropped.elements)
    before, after = shown(form, decision, whole), shown(form, decision, prompt)
    assert after == {index: before[index] for index in kept}
    count = len(dropped.elements)
    assert (f"({count} elements are left out)" in prompt) == (count > 0)
    if dropped.elements or dropped.reasons:
        assert dropped.history == len(decision.observation.history)
    named = {named for reply in form.replies(made) for named in indices(reply)}
    assert {index for index in named if index < len(before)} == kept


def indices(reply: tuple[str | FreeText, ...]) -> list[int]:
    text = "".join(part for part in reply if isinstance(part, str))
    return [int(a or b) for a, b in re.findall(r'\[(\d+)\]|"index":(\d+)', text)]


def replaced(decision: Decision, dropped: Dropped) -> Decision:
    return Decision(
        observation=decision.observation,
        heard=decision.heard,
        partial=decision.partial,
        dropped=dropped,
    )
