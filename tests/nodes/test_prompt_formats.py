"""Prompt formats: what is written is read back, and no text from outside imitates a line."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.action import ACTION_TYPES, Action, Unparsed
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import FORMATS, FreeText, reason_of

COMPACT = FORMATS["compact"]
both = pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
labels = texts | st.sampled_from(["save", "a [1] : b", "x [2] to y [0]", "{", "pass", "click [3]"])


@st.composite
def screens(draw: st.DrawFn) -> Observation:
    elements = [
        Element(
            index=k,
            role=draw(st.sampled_from(["button", "field", "switch", "item"])),
            text=draw(labels),
            value=draw(st.none() | texts),
            checked=draw(st.none() | st.booleans()),
            editable=draw(st.booleans()),
            enabled=draw(st.booleans()),
        )
        for k in range(draw(st.integers(1, 5)))
    ]
    return Observation(goal=draw(texts), app=draw(texts), elements=tuple(elements))


@st.composite
def actions(draw: st.DrawFn, screen: Observation) -> Action:
    kind = draw(st.sampled_from(ACTION_TYPES))
    index = draw(st.integers(0, len(screen.elements) - 1))
    fields: dict[str, object] = {"action_type": kind}
    if kind in ("click", "double_tap", "long_press", "input_text", "select"):
        fields["index"] = index
    if kind in ("input_text", "select", "answer"):
        fields["text"] = draw(labels)
    if kind in ("scroll", "swipe"):
        fields["direction"] = draw(st.sampled_from(["up", "down", "left", "right"]))
        if draw(st.booleans()):
            fields["index"] = index
    if kind == "status":
        fields["goal_status"] = draw(st.sampled_from(["complete", "infeasible"]))
    if kind == "open_app":
        fields["app_name"] = draw(labels.filter(bool))
    if kind == "click" and draw(st.booleans()):
        fields = {"action_type": kind, "x": 3, "y": 4}
    if kind == "input_text" and draw(st.booleans()):
        fields["clear_text"] = True
    return Action(**fields)  # type: ignore[arg-type]


@both
@given(data=st.data())
def test_an_action_and_its_reason_are_read_back(form, data) -> None:  # type: ignore[no-untyped-def]
    screen = data.draw(screens())
    action = data.draw(actions(screen))
    reason = " ".join(data.draw(st.text("abc xyz,.", max_size=40)).split())
    reply = form.write(action, screen, reason)
    read = form.parse(reply, screen)
    assert isinstance(read, Action), read
    assert (read.key, read.text) == (action.key, action.text)
    assert reason_of(reply, form.name) == reason


@both
@given(data=st.data())
def test_every_possible_reply_is_an_action_on_the_screen(form, data) -> None:  # type: ignore[no-untyped-def]
    screen = data.draw(screens())
    replies = form.replies(Decision(observation=screen))
    assert len(set(replies)) == len(replies)
    for parts in replies:
        words = [p if isinstance(p, str) else " milk" for p in parts]
        read = form.parse("".join(words), screen)
        assert isinstance(read, Action), (words, read)
        assert read.index is None or screen.elements[read.index].enabled
        assert not any(isinstance(a, str) and isinstance(b, str) for a, b in pairwise(parts))
        assert all(p.max_tokens > 0 for p in parts if isinstance(p, FreeText))


@given(screens(), st.lists(texts, max_size=3))
def test_no_text_from_outside_adds_a_line_to_a_compact_prompt(
    screen: Observation, contents: list[str]
) -> None:
    heard = tuple(Heard(sender=f"agent_{k}", round=0, content=c) for k, c in enumerate(contents))
    _, turn = COMPACT.chat(Decision(observation=screen, heard=heard))
    expected = 4 + len(screen.elements) + (len(heard) + 1 if heard else 0)
    assert len(turn.content.splitlines()) == expected


def test_a_label_without_an_index_is_read_if_one_element_has_it() -> None:
    named = ("Save", "Cancel", "Cancel", "Name")
    elements = tuple(Element(index=k, role="button", text=name) for k, name in enumerate(named))
    screen = Observation(goal="save", elements=elements)
    assert COMPACT.parse("click save", screen) == Action(
        action_type="click", target="Save", index=0
    )
    typed = COMPACT.parse("input_text Name : Ada", screen)
    assert isinstance(typed, Action) and (typed.index, typed.text) == (3, "Ada")
    several = COMPACT.parse("click Cancel", screen)
    assert isinstance(several, Unparsed) and "'label [index]'" in several.reason
