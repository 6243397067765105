"""The reason and the action of a message, for the agent that receives it."""

from __future__ import annotations

import msgspec

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.json_text import objects
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.prompts.quoting import cut

PASS = "pass"
"""The reply of an agent that abstains, in the compact format."""
LEFT_OUT = "…"
UNSEEN = "(an action on something you do not see)"
_FENCES = ("```json", "```")
_COMPACT = frozenset({*ACTION_TYPES, PASS})


def utterance(content: str, action: Action | None, *, prompt_format: str = "json") -> str:
    """The text of a message, with its action as JSON in the indices of the receiving agent.

    ``content`` is the whole reply of the sender. ``action``: ``None`` if there is none or if it
    refers to an element that the receiver does not see.
    """
    before = _before_action(content, prompt_format)
    if before is None:
        if action is None:
            return cut(content.strip())
        before = content.strip() if prompt_format == "json" else ""
    said = UNSEEN if action is None else action.json()
    return f"{cut(before)}\nAction: {said}".strip()


def reason_of(content: str, prompt_format: str = "json") -> str:
    """A reply without its action; the whole reply if it has none."""
    before = _before_action(content, prompt_format)
    text = content if before is None else before
    return text.strip().removeprefix("Reason:").strip()


def heard_messages(decision: Decision) -> tuple[Heard, ...]:
    """The messages of a decision, with ``…`` for reasons that the prompt leaves out."""
    if decision.dropped is None or not decision.dropped.reasons:
        return decision.heard
    return tuple(
        msgspec.structs.replace(heard, content=LEFT_OUT, prompt_format="json")
        if position in decision.dropped.reasons
        else heard
        for position, heard in enumerate(decision.heard)
    )


def _before_action(content: str, prompt_format: str) -> str | None:
    """The text of a reply before its action, or ``None`` if the reply has no action."""
    if prompt_format == "compact":
        before, _, last = content.strip().rpartition("\n")
        last = last.lstrip()
        acts = last.startswith("{") or last.partition(" ")[0] in _COMPACT
        return before.strip() if acts else None
    found = [f for f in objects(content) if f.value.get("action_type") in ACTION_TYPES]
    if not found:
        return None
    before = content[: found[-1].start]
    for ends in (_FENCES, ("Action:",), _FENCES):
        before = before.rstrip()
        end = next((end for end in ends if before.endswith(end)), "")
        before = before.removesuffix(end)
    return before.strip()
