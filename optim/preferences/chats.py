"""Decisions, lessons and preference pairs as chats, for other training libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm_ui.action import Abstain, Action
from swarm_ui.model import Decision
from swarm_ui.prompts import decision_chat

if TYPE_CHECKING:
    from swarm_ui.optim.preferences.pairs import PreferencePair
    from swarm_ui.optim.stage1.synthesis.screens import ActionSample, QuestionSample


def prompt(decision: Decision) -> list[dict[str, str]]:
    """What a large model reads, as OpenAI's messages."""
    return [{"role": turn.role, "content": turn.content} for turn in decision_chat(decision)]


def reply(action: Action | Abstain) -> dict[str, str]:
    return {"role": "assistant", "content": f"Action: {action.json()}"}


def lesson(drawn: ActionSample) -> dict[str, Any]:
    """A supervised sample, in the form of TRL's ``messages``."""
    messages = [*prompt(drawn.decision), reply(drawn.action)]
    return {"kind": "action", "level": drawn.level, "messages": messages}


def quiz(drawn: QuestionSample) -> dict[str, Any]:
    """Questions about one screen, each with its answer."""
    from swarm_ui.observation import render

    screen = drawn.decision.observation
    turns = [{"role": "user", "content": f"Screen:\n{render(screen)}"}]
    for kind, index in drawn.questions:
        element = screen.elements[index]
        asked, answer = {
            "where": (f'Which number has "{element.label}"?', str(index)),
            "state": (f"Is element {index} on?", "on" if element.checked else "off"),
            "value": (f"What does element {index} hold?", element.value or ""),
        }[kind]
        turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return {"kind": "question", "level": 1, "messages": turns}


def pair(found: PreferencePair) -> dict[str, Any]:
    """A preference pair, in TRL's conversational form."""
    out: dict[str, Any] = {
        "node": found.node,
        "weight": found.weight,
        "source": found.source,
        "prompt": prompt(found.decision),
        "chosen": [reply(found.chosen)],
    }
    if found.rejected is not None:
        out["rejected"] = [reply(found.rejected)]
    return out
