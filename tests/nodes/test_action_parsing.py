"""Actions: validated when built, found in any reply, never an exception."""

from __future__ import annotations

import pytest

from swarm_ui.action import Action, Unparsed, parse_action


def test_the_last_object_of_a_reply_counts_whatever_stands_around_it() -> None:
    reply = (
        'Reason: {"not": "this"} the button.\nAction: ```json\n'
        '{"action_type": "click", "target": "Save {now}", "index": "3", "why": 1}\n```'
    )
    assert parse_action(reply) == Action(action_type="click", target="Save {now}", index=3)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("click save", "no JSON object"),
        ('{"action_type": "fly"}', "unknown action_type 'fly'"),
        ('{"action_type": ["click"]}', "unknown action_type"),
        ('{"action_type": "click"}', "needs 'index'"),
        ('{"action_type": "click", "index": -1}', ">= 0"),
        ('{"action_type": "click", "index": 1, "x": 2, "y": 3}', "not both"),
        ('{"action_type": "input_text", "index": 1}', "needs 'text'"),
        ('{"action_type": "scroll", "direction": "sideways"}', "direction"),
        ('{"action_type": "status"}', "goal_status"),
        ('{"action_type": "click", "x": 1e400, "y": 1}', "float"),
        ('{"action_type": "click", "index": NaN}', "float"),
        ('{"action_type": "click", "index": ' + "9" * 5000 + "}", "no JSON object"),
        ('{"action_type": "click", "index": ' + "9" * 30 + "}", "must lie within"),
        ('{"action_type": "click", "index": "' + "9" * 5000 + '"}', "out of range"),
        ('{"action_type": "answer", "text": "' + "x" * 60_000 + '"}', "60000 characters"),
        (" " * 70_000 + '{"action_type": "wait"}', "at most 65536 are read"),
        ('{"a":' * 60_000, "at most"),
        ('{"a":' * 10_000, "no JSON object"),
    ],
)
def test_what_is_no_action_is_a_value_with_a_reason(reply: str, reason: str) -> None:
    parsed = parse_action(reply)
    assert isinstance(parsed, Unparsed)
    assert reason in parsed.reason
    assert parsed.text == reply
