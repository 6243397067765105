"""The rules that drop bad items. Every rule gives a reason, and reasons are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.observation import Observation, render
from swarm_ui.optim.adversary import fits, with_label
from swarm_ui.optim.stage1.samples import CorpusConfig, Sample, short_hash
from swarm_ui.prompts import format_named, reason_of, summary, utterance

_REFUSAL = re.compile(
    r"(?i)\b(?:as an? (?:ai|language model)|i(?:'m| am) (?:sorry|unable)|i (?:cannot|can't) (?:see|"
    r"help|assist|answer|determine))\b"
)
_NUMBERED = re.compile(r"(?i)\b(?:element|index|number|item)\s+#?(\d+)")
_LINE = re.compile(r"^\d+: ", re.MULTILINE)
_POINTER = re.compile(r'(?<="index":)\s*\d+|(?<=\[)\d+(?=\])')

Reason = str


class DropCounts(Counter[str]):
    def note(self, level: int, reason: Reason, times: int = 1) -> None:
        if times:
            self[f"level {level}: {reason}"] += times


def answer_fault(observation: Observation, question: str, answer: str) -> Reason | None:
    """Why a question with its answer is dropped; ``None`` if it is not."""
    asked, said = " ".join(question.split()), " ".join(answer.split())
    if not asked or not said:
        return "empty"
    if _REFUSAL.search(said):
        return "a refusal"
    if said.casefold() == asked.casefold():
        return "answer repeats the question"
    named = [int(number) for number in _NUMBERED.findall(f"{asked} {said}")]
    if any(number >= len(observation.elements) for number in named):
        return "names an element that is not there"
    return None


def canonical(reply: str, observation: Observation) -> tuple[str, Action] | Reason:
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
    if _REFUSAL.search(reason):
        return "a refusal"
    return f"Reason: {' '.join(reason.split())}\nAction: {action.json()}", action


def written(canonical_reply: str, action: Action, screen: Observation, config: CorpusConfig) -> str:
    """A reply as written to the corpus: in its format, with or without reason.

    Args:
        canonical_reply, action: what :func:`canonical` returned.
        screen: the screen that the reply is about.
        config: settings.
    """
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


def likeness(
    level: int, observation: Observation, said: Sequence[str], responses: Sequence[str]
) -> str:
    """A hash that is equal for samples that differ only in the sequence of the elements.

    Args:
        level: the level of the sample.
        observation: the screen with its goal and history.
        said: the other texts of the prompt: the question, or the messages of neighbours.
        responses: the response, or the chosen and the rejected response.
    """
    lines = sorted(_LINE.sub("", render(observation)).splitlines())
    past = [summary(event) for event in observation.history]
    parts = [str(level), observation.goal, observation.app, *lines, *past]
    parts += [_POINTER.sub("", text) for text in (*said, *responses)]
    return short_hash("\x1e".join(map(_plain, parts)))


class Deduplicator:
    """Accepts each sample once, and at most ``repeats`` samples with the same :func:`likeness`."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._seen: set[str] = set()
        self._alike: Counter[str] = Counter()

    def fault(self, sample: Sample) -> Reason | None:
        """Why the sample is dropped. ``None`` if it is accepted; then it is remembered."""
        if _same_text(sample) in self._seen:
            return "a duplicate"
        if self._alike[sample.alike] >= self._repeats:
            return "one of many alike"
        self.remember(sample)
        return None

    def remember(self, sample: Sample) -> None:
        self._seen.add(_same_text(sample))
        self._alike[sample.alike] += 1


def _same_text(sample: Sample) -> str:
    """A key of prompt and response. The rejected response does not count."""
    turns = [turn.content for turn in sample.chat]
    return short_hash(_plain("\x1e".join([str(sample.level), *turns, sample.response])))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
