"""AutoWebBench's metrics: by the official scorer's denominators, and by strict ones.

Source: THUDM/AutoWebGLM, ``eval.py``, reimplemented from how it works. The two disagree on what
counts, so both are always told, by name:

**Official.** ``type``: same function. ``label``: same element id, over steps whose recorded call
has one. ``param``: ROUGE-1 F of the parameter, over steps where it is above 0 (none, or nothing in
common, is left out, never 0). ``all``, published as step success rate: same function and same id,
*only* over steps whose recorded call has an element, so scroll_page, go, finish and user_input
(about 40 % of the steps) never count, nor does what is typed. Where a call's arguments cannot be
read, the prediction's or the recorded one's (``finish()``, for one), the step is dropped from all
four. All are means over steps (micro).

**Strict.** Every step counts; what cannot be read is wrong. ``parameter`` is over all steps whose
recorded call has one, 0 where there is nothing. ``step success``: same function, same element if
there is one, and same parameter (but for case and surrounding space) where one is chosen or typed:
select, type_string, scroll_page, go, jump_to, switch_tab. Messages to a person (finish,
user_input) may be worded freely. Task success: all steps of a task.

Official numbers of ``param`` cut words with jieba; pass ``words=jieba.cut`` for the same. Ours cuts
Chinese into single characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.environments.autowebbench.call_syntax import Call, official_call, strict_call
from swarm_ui.environments.recorded.benchmark_scores import RESAMPLES, Question, Scores, measured
from swarm_ui.environments.recorded.teacher_forced import answers
from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.environments.autowebbench.data import AutoWebBench

Words = Callable[[str], Iterable[str]]

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
_CHOSEN = frozenset({"select", "type_string", "scroll_page", "go", "jump_to", "switch_tab"})


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply to one step, scored without an environment."""

    task: str
    """What the bootstrap draws."""
    predict: str
    """The reply; what stands after its last ``"A: "`` is the call."""
    labels: tuple[str, ...]
    """The recorded call; more than one if any of them is right."""
    attempt: int = 0
    """Which of several attempts at the task it belongs to."""


def cut_words(text: str) -> list[str]:
    """Words for ROUGE: runs of letters and digits, single Chinese characters, punctuation.

    >>> cut_words("上海 is big.")
    ['上', '海', 'is', 'big', '.']
    """
    return _WORD.findall(text)


def rouge_1(predicted: str, recorded: str, words: Words = cut_words) -> float:
    """ROUGE-1 F over the sets of words, as ``rouge_chinese`` computes it.

    >>> round(rouge_1("a b", "a c"), 3)
    0.5
    """
    ours, theirs = _set(predicted, words), _set(recorded, words)
    shared = len(ours & theirs)
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2.0 * precision * recall / (precision + recall + 1e-8)


def official_step(
    predict: str, labels: Sequence[str], words: Words = cut_words
) -> dict[str, float]:
    """What the official scorer notes of a step, by its keys; a missing key does not count.

    One thing is kinder: an empty parameter, or a number as one, would end that scorer with an
    error, and is here left out of ``param``, or read as its text.
    """
    noted: dict[str, float] = {}
    predicted = official_call(_reply(predict))
    for text in labels:
        gold = official_call(text)
        if gold is None or predicted is None:
            continue
        if gold.function is not None:
            noted["type"] = float(gold.function == predicted.function)
        if gold.element is not None:
            noted["label"] = float(gold.element == predicted.element)
        if gold.parameter is not None and predicted.parameter is not None:
            rouge = rouge_1(str(predicted.parameter), str(gold.parameter), words)
            if rouge:
                noted["param"] = rouge
        if gold.function is not None and gold.element is not None:
            noted["all"] = float(noted["type"] == 1.0 and noted["label"] == 1.0)
            if noted["all"]:
                break
    return noted


def strict_step(predict: str, labels: Sequence[str], words: Words = cut_words) -> dict[str, float]:
    """Strict scores of a step; of several labels the one that is met best.

    Raises:
        ConfigError: a label is no call.
    """
    predicted = strict_call(_reply(predict))
    scored = [_strict(predicted, text, words) for text in labels]
    return max(scored, key=lambda s: (s["step success"], s["function"], s.get("element", 0.0)))


def strict_right(predict: str, labels: Sequence[str]) -> bool:
    """Whether a step is a success, strictly."""
    return strict_step(predict, labels)["step success"] == 1.0


def score_predictions(
    predictions: Sequence[Prediction],
    *,
    title: str = "autowebbench",
    words: Words | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    counts: dict[str, int] | None = None,
) -> Scores:
    """Score replies of any model; ``words`` and the rest as in :meth:`AutoWebBench.score`."""
    cut = words or cut_words
    official: dict[str, dict[str, list[float]]] = {k: {} for k in _OFFICIAL}
    strict: dict[str, dict[str, list[float]]] = {k: {} for k in _STRICT}
    attempts: dict[tuple[str, int], bool] = {}
    dropped = 0
    for one in predictions:
        noted = official_step(one.predict, one.labels, cut)
        judged = strict_step(one.predict, one.labels, cut)
        dropped += not noted
        attempt = (one.task, one.attempt)
        attempts[attempt] = attempts.get(attempt, True) and judged["step success"] == 1.0
        for found, into in ((noted, official), (judged, strict)):
            for key, value in found.items():
                into[key].setdefault(one.task, []).append(value)
    solved: dict[str, list[float]] = {}
    for (task, _), success in attempts.items():
        solved.setdefault(task, []).append(float(success))
    questions = [
        Question(name=f"official {what}", key=key, values=official[key])
        for key, what in _OFFICIAL.items()
    ]
    for name in _STRICT:
        questions.append(Question(name=f"strict {name} (micro)", values=strict[name]))
        questions.append(Question(name=f"strict {name} (macro)", values=strict[name], macro=True))
    questions.append(Question(name="strict task success", values=solved, macro=True))
    told = {**(counts or {}), "steps": len(predictions), "dropped by the official scorer": dropped}
    return Scores(
        title=title, measures=measured(questions, seed=seed, resamples=resamples), counts=told
    )


_OFFICIAL = {
    "type": "function",
    "label": "element",
    "param": "parameter (ROUGE-1 F)",
    "all": "step success",
}
_STRICT = ("function", "element", "parameter (ROUGE-1 F)", "step success")


def score(
    data: AutoWebBench,
    episodes: Sequence[Episode],
    *,
    words: Words | None,
    seed: int,
    resamples: int,
) -> Scores:
    """See :meth:`swarm_ui.environments.autowebbench.AutoWebBench.score`."""
    counts = dict.fromkeys(
        ("episodes", "masked by a fault", "pointing at no element", "not reached"), 0
    )
    predictions: list[Prediction] = []
    for number, episode in enumerate(episodes):
        counts["episodes"] += 1
        if episode.success is None:
            counts["masked by a fault"] += 1
            continue
        gold = data.load(episode.task)
        found = answers(gold, episode, name=data.name)
        counts["pointing at no element"] += found.lost
        counts["not reached"] += found.unreached
        for step, action in zip(gold, found.actions, strict=True):
            said = step.call(action)
            predictions.append(
                Prediction(task=episode.task, predict=said, labels=step.labels, attempt=number)
            )
    return score_predictions(
        predictions,
        title=data.name,
        words=words,
        seed=seed,
        resamples=resamples,
        counts=counts,
    )


def _strict(predicted: Call, text: str, words: Words) -> dict[str, float]:
    gold = strict_call(text)
    if gold.function is None:
        raise ConfigError(f"a label must be a call such as \"click('SD')\", got {text!r}")
    scores = {"function": float(predicted.function == gold.function)}
    right = scores["function"] == 1.0
    if gold.element is not None:
        scores["element"] = float(predicted.element == gold.element)
        right = right and scores["element"] == 1.0
    if gold.parameter is not None:
        said = "" if predicted.parameter is None else str(predicted.parameter)
        scores["parameter (ROUGE-1 F)"] = rouge_1(said, str(gold.parameter), words)
        if gold.function in _CHOSEN:
            right = right and _same(said, str(gold.parameter))
    return {**scores, "step success": float(right)}


def _same(ours: str, theirs: str) -> bool:
    return ours.strip().casefold() == theirs.strip().casefold()


def _reply(predict: str) -> str:
    return predict.split("A: ")[-1].strip()


def _set(text: str, words: Words) -> set[str]:
    return {word for word in words(text) if word.strip()}
