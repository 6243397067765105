"""The rules that drop bad items. Every rule gives a reason, and reasons are counted."""

from __future__ import annotations

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import fits, with_label
from swarm_ui.optim.stage1.samples import CorpusConfig
from swarm_ui.prompts import format_named, reason_of, utterance

Reason = str
Read = tuple[str, Action]
"""A reply in canonical form, and its action."""


def canonical(reply: str, observation: Observation) -> Read | Reason:
    """A reply in canonical form, with its action; or the reason why it is dropped.

    The canonical form is a reason, then the action with the label of its element. Good and bad
    replies get the same form, so that they differ only in content.
    """
    action = parse_action(reply)
    if isinstance(action, Unparsed):
        return "no valid action"
    if not observation.offers(action.action_type):
        return "an act that means nothing here"
    if not fits(action, observation):
        return "impossible on this screen"
    meant = observation.element(action.index)
    label = "" if meant is None else _plain(meant.label)
    if action.target and label not in ("", _plain(action.target)):
        return "label and number of different elements"
    action = with_label(action, observation)
    text = utterance(reply, action)
    reason = text.rpartition("\nAction:")[0].removeprefix("Reason:").strip()
    if not reason:
        return "no reason given"
    return f"Reason: {' '.join(reason.split())}\nAction: {action.json()}", action


def written(canonical_reply: str, action: Action, screen: Observation, config: CorpusConfig) -> str:
    """What :func:`canonical` returned as written to the corpus: in its format, with or without
    reason."""
    if config.prompt_format == "json" and config.reasons:
        return canonical_reply
    reason = reason_of(canonical_reply) if config.reasons else ""
    return format_named(config.prompt_format).write(action, screen, reason)


def score_fault(score: float | None) -> Reason | None:
    """Why an item with this score is dropped; ``None`` if it is not."""
    if score is None:
        return "the critic did not say"
    if score > 0.5:
        return None
    return "judged wrong" if score < 0.5 else "the critic cannot tell"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
