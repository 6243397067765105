"""Which items are good enough: every rule drops with a reason, and reasons are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.observation import Observation, render
from swarm_ui.optim.preferences.adversary import fits, with_label
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.samples import Sample, short_hash
from swarm_ui.prompts import summary, utterance

_REFUSAL = re.compile(
    r"(?i)\b(?:as an? (?:ai|language model)|i(?:'m| am) (?:sorry|unable)|i (?:cannot|can't) (?:see|"
    r"help|assist|answer|determine))\b"
)
_NUMBERED = re.compile(r"(?i)\b(?:element|index|number|item)\s+#?(\d+)")
_LINE = re.compile(r"^\d+: ", re.MULTILINE)
_POINTER = re.compile(r'(?<="index":)\s*\d+')

Reason = str


class Dropped(Counter[str]):
    """Counts of what was left out, by level and reason."""

    def note(self, level: int, reason: Reason, times: int = 1) -> None:
        if times:
            self[f"level {level}: {reason}"] += times


def answer_fault(observation: Observation, question: str, answer: str) -> Reason | None:
    """Why a question with its answer is no good; ``None`` if it may be."""
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
    """A reply in the form that agents are asked for, with its action; or why it is no good.

    Good and bad replies get the same form, so that they differ in what they say alone: the reason,
    then the action with the label of the element that it points at.
    """
    action = parse_action(reply)
    if isinstance(action, Unparsed):
        return "no valid action"
    if observation.actions and action.action_type not in observation.actions:
        return "an act that means nothing here"
    if not fits(action, observation):
        return "impossible on this screen"
    meant = observation.element(action.index)
    if action.target and meant is not None and not _same(action.target, meant.label):
        return "label and number of different elements"
    action = with_label(action, observation)
    text = utterance(reply, action)
    reason = text.rpartition("\nAction:")[0].removeprefix("Reason:").strip()
    if not reason:
        return "no reason given"
    if _REFUSAL.search(reason):
        return "a refusal"
    return f"Reason: {' '.join(reason.split())}\nAction: {action.json()}", action


def size_fault(sample: Sample, config: CorpusConfig) -> Reason | None:
    """Why a sample is too long; ``None`` if it is not."""
    if sum(len(turn.content) for turn in sample.chat) > config.longest_prompt:
        return "prompt too long"
    longest = max(len(sample.response), len(sample.rejected or ""))
    return "response too long" if longest > config.longest_response else None


def score_fault(score: float | None, config: CorpusConfig) -> Reason | None:
    """Why an item with this score is not right; ``None`` if it is."""
    if score is None:
        return "the critic did not say"
    if score > config.good_above:
        return None
    return "judged wrong" if score < config.bad_below else "the critic cannot tell"


def likeness(
    level: int, observation: Observation, said: Sequence[str], responses: Sequence[str]
) -> str:
    """What samples of one screen have in common, whatever the order of its elements.

    Args:
        level: of the sample.
        observation: the screen in its context, goal and history included.
        said: what else the prompt holds: the question, or the words of neighbours.
        responses: one, or the chosen and the rejected.
    """
    lines = sorted(_LINE.sub("", render(observation)).splitlines())
    past = [summary(event) for event in observation.history]
    parts = [str(level), observation.goal, observation.app, *lines, *past]
    parts += [_POINTER.sub("", text) for text in (*said, *responses)]
    return short_hash("\x1e".join(map(_plain, parts)))


class Unique:
    """Takes each sample once, and of those that are alike only so many."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._seen: set[str] = set()
        self._alike: Counter[str] = Counter()

    def fault(self, sample: Sample) -> Reason | None:
        """Why it is one too many; ``None``: it is taken, and remembered."""
        if _same_text(sample) in self._seen:
            return "a duplicate"
        if self._alike[sample.alike] >= self._repeats:
            return "one of many alike"
        self.remember(sample)
        return None

    def remember(self, sample: Sample) -> None:
        """Count a sample that was taken before."""
        self._seen.add(_same_text(sample))
        self._alike[sample.alike] += 1


def _same_text(sample: Sample) -> str:
    """Equal for samples with one prompt and one response, whatever is rejected."""
    turns = [turn.content for turn in sample.chat]
    return short_hash(_plain("\x1e".join([str(sample.level), *turns, sample.response])))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other) or not _plain(other)
