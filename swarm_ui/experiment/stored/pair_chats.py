"""Preference pairs as chats, for other training libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm_ui.action import Abstain, Action
from swarm_ui.errors import TraceError
from swarm_ui.model import ChatMessage
from swarm_ui.prompts import chat_of, format_named

if TYPE_CHECKING:
    from swarm_ui.optim.preferences import PreferencePair


def pair(found: PreferencePair, prompt_format: str | None = None) -> dict[str, Any]:
    """A preference pair, in one of TRL's forms.

    The prompt is the one that was used, and the replies are exactly those that are learned from. A
    prompt that was sent as a chat gives TRL's conversational form; one that was read as plain text
    (by a model in this process) gives the plain form, with texts instead of turns. Pictures are
    left out.

    Args:
        found: the pair.
        prompt_format: rewrite the decision and both replies in this format, in the conversational
            form, to train another model; replies without a valid action are not changed.
    """
    out: dict[str, Any] = {"node": found.node, "weight": found.weight, "source": found.source}
    good, bad = found.chosen_text, found.rejected_text
    if prompt_format is None:
        turns = _turns(found)
    else:
        turns = format_named(prompt_format).chat(found.decision)
        good = _rewritten(found, found.chosen, good, prompt_format)
        if found.rejected is not None and bad is not None:
            bad = _rewritten(found, found.rejected, bad, prompt_format)
    if turns is None:
        out |= {"prompt": found.prompt, "chosen": good}
        return out if bad is None else out | {"rejected": bad}
    out["prompt"] = [{"role": turn.role, "content": turn.content} for turn in turns]
    out["chosen"] = [_said(good)]
    return out if bad is None else out | {"rejected": [_said(bad)]}


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _turns(found: PreferencePair) -> tuple[ChatMessage, ...] | None:
    """The chat that was sent, or ``None`` if the model read plain text."""
    if not found.prompt:
        return format_named(found.prompt_format).chat(found.decision)
    png = found.decision.observation.png
    try:
        return chat_of(found.prompt, pictures=() if png is None else (png,))
    except TraceError:
        return None


def _rewritten(
    found: PreferencePair, action: Action | Abstain, text: str, prompt_format: str
) -> str:
    reason = format_named(found.prompt_format).reason(text)
    return format_named(prompt_format).write(action, found.decision.observation, reason)
