"""Replies as a regular expression: what a format writes matches, and nothing that is impossible."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from swarm_ui.action import Abstain, Action, Unparsed
from swarm_ui.model import Decision
from swarm_ui.nodes.models.reply_patterns import reply_pattern
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import format_named

SCREEN = Observation(
    goal="save (and *close*)",
    elements=(
        Element(index=0, role="button", text="Save [all] | a+b?"),
        Element(index=1, role="field", text="Name (x)", editable=True),
    ),
)
POSSIBLE = [
    Action(action_type="click", index=0, target="Save [all] | a+b?"),
    Action(action_type="input_text", index=1, target="Name (x)", text="milk, 2 l (fresh)"),
    Action(action_type="open_app", app_name="clock"),
    Action(action_type="answer", text="02:36"),
    Action(action_type="scroll", direction="down"),
    Action(action_type="status", goal_status="complete"),
]


@pytest.mark.parametrize("name", ["compact", "json"])
def test_what_is_possible_matches_and_nothing_else(name: str) -> None:
    form = format_named(name)
    pattern = re.compile(reply_pattern(form.replies(Decision(observation=SCREEN))))
    reason = "it is there" if name == "json" else ""
    for action in POSSIBLE:
        reply = form.write(action, SCREEN, reason)
        assert pattern.fullmatch(reply), reply
        read = form.parse(reply, SCREEN)
        assert not isinstance(read, Unparsed) and read.action_type == action.action_type
    elsewhere = form.write(Action(action_type="click", index=7), SCREEN, reason)
    assert not pattern.fullmatch(elsewhere)
    assert not pattern.fullmatch("")


def test_an_agent_with_a_pane_may_say_something_before_it_passes() -> None:
    form = format_named("compact")
    row = Element(index=0, role="item", text="ana", value="phone 555-1234", pane="contacts")
    pane = Observation(goal="send the phone of ana", elements=(row,))
    window = Observation(goal="send the phone of ana", elements=(replace(row, pane=""),))
    said = form.write(Abstain(), pane, "in contacts ana has phone 555-1234")
    for screen, partial, expected in (
        (pane, True, True),
        (window, True, False),
        (pane, False, False),
    ):
        replies = form.replies(Decision(observation=screen, partial=partial))
        assert bool(re.fullmatch(reply_pattern(replies), said)) == expected
    assert isinstance(form.parse(said, pane, partial=True), Abstain)
    assert form.reason(said) == "in contacts ana has phone 555-1234"


@pytest.mark.parametrize("reply", ["open_appclock", "open_app  ", "answer", "answer \n", "click"])
def test_free_text_is_text(reply: str) -> None:
    form = format_named("compact")
    assert not re.fullmatch(reply_pattern(form.replies(Decision(observation=SCREEN))), reply)
