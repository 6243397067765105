"""AutoWebBench's calls and metrics: the official ones, and strict ones in which every step counts.

Source: THUDM/AutoWebGLM, ``eval.py``, reimplemented from its behaviour. The two kinds count
different steps, so the results always contain both, by name:

**Official.** All four are means over steps (micro). ``type``: same function. ``label``: same
element id, over the steps whose recorded call has one. ``param``: ROUGE-1 F of the parameter, over
the steps whose value is above 0, so a step without a common word is left out. ``all``, published as
step success rate: same function and same id, *only* over the steps whose recorded call has an
element. So scroll_page, go, finish and user_input (about 40 % of the steps) never count for
``all``, and neither does a typed text. A step is dropped from all four if the arguments of the
predicted or of the recorded call cannot be read (``finish()``, for one).

**Strict.** Every step counts, and a call that cannot be read is wrong. ``parameter`` is a mean over
all steps whose recorded call has one; a missing parameter scores 0. ``step success``: same
function, same element if there is one, and same parameter (except for case and surrounding space)
for select, type_string, scroll_page, go, jump_to and switch_tab. The wording of finish and
user_input is free. Task success: all steps of a task.

For ``param``, the official scorer splits texts into words with jieba; pass ``words=jieba.cut`` for
the same numbers. Its ``eval`` of replies is a parser of literals here, so none of them is run.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Sequence

import msgspec

from swarm_ui.environments.recorded.scores import Column

Words = Callable[[str], Iterable[str]]

_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r"})
_CHOOSING = ("scroll_page", "go", "jump_to", "switch_tab")
_PLACES: dict[str, tuple[int | None, int | None]] = {
    **dict.fromkeys(("click", "hover"), (0, None)),
    **dict.fromkeys(("select", "type_string"), (0, 1)),
    **dict.fromkeys((*_CHOOSING, "user_input", "finish"), (None, 0)),
}
"""Function -> positions of the element and of the parameter among its arguments."""
FUNCTIONS = tuple(_PLACES)
_CHOSEN = ("select", "type_string", *_CHOOSING)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
DROPPED = "dropped by the official scorer"
_NAMES = {"type": "function", "label": "element", "param": "parameter (ROUGE-1 F)",
          "all": "step success"}  # fmt: skip
"""Keys of the official scorer, and what they are called here."""
COLUMNS = (
    *(Column(f"official {name}", key, key) for key, name in _NAMES.items()),
    *(
        Column(f"strict {name} ({how})", name, macro=how == "macro")
        for name in _NAMES.values()
        for how in ("micro", "macro")
    ),
    Column("strict task success", "task success", macro=True),
)


class Call(msgspec.Struct, frozen=True):
    """A call as both scorers compare it. All fields are ``None`` if the text has no call."""

    function: str | None = None
    element: object = None
    """Id of the element. A model may write any literal here."""
    parameter: object = None
    """Option, text, direction, address, tab, message or answer."""


def official_call(text: str) -> Call | None:
    """A call as the official scorer reads it; ``None`` if that scorer raises an error and drops the
    step.

    It reads the first line only. It raises if an argument is missing (such as in ``finish()``) or
    is not valid Python (such as an id without quotes); here also if it is not a literal.
    """
    found = re.match(r"(\w+)\((.*)\)", text)
    if found is None:
        return Call()
    arguments = _literals(found[2])
    needed = 1 + max((place or 0 for place in _PLACES.get(found[1], ())), default=-1)
    return None if arguments is None or len(arguments) < needed else _call(found[1], arguments)


def strict_call(text: str) -> Call:
    """A call as the strict scorer reads it. An unreadable call counts as wrong.

    A text may contain line breaks, and a missing argument is ``None``.
    """
    for pattern in (r"(\w+)\((.*)\)", r"(?s)(\w+)\((.*)\)"):
        found = re.match(pattern, text.strip())
        arguments = _literals(found[2].translate(_BREAKS)) if found else None
        if found and arguments is not None:
            return _call(found[1], arguments)
    return Call()


def _call(function: str, arguments: Sequence[object]) -> Call:
    given: dict[int | None, object] = dict(enumerate(arguments))
    return Call(function, *map(given.get, _PLACES.get(function, ())))


def _literals(arguments: str) -> Sequence[object] | None:
    """Arguments of a call; ``None`` if one is not a positional literal."""
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of "\d" in a text
            tree = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
            return None
        return [ast.literal_eval(argument) for argument in tree.args]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


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
    found, gold = ({w for w in words(text) if w.strip()} for text in (predicted, recorded))
    shared = len(found & gold)
    if not shared:
        return 0.0
    precision, recall = shared / len(found), shared / len(gold)
    return 2.0 * precision * recall / (precision + recall + 1e-8)


def official_step(
    predict: str, labels: Sequence[str], words: Words = cut_words
) -> dict[str, float]:
    """The official scores of a step by their keys. A step without a key does not count for it.

    One case differs. The official scorer fails on an empty parameter and on a number. Here an
    empty parameter is left out of ``param``, and a number is compared as text.
    """
    scores: dict[str, float] = {}
    predicted = official_call(_reply(predict))
    for text in labels:
        gold = official_call(text)
        if gold is None or predicted is None:
            continue
        if gold.function is not None:
            scores["type"] = float(gold.function == predicted.function)
        if gold.element is not None:
            scores["label"] = float(gold.element == predicted.element)
        if gold.parameter is not None and predicted.parameter is not None:
            rouge = rouge_1(str(predicted.parameter), str(gold.parameter), words)
            if rouge:
                scores["param"] = rouge
        if gold.function is not None and gold.element is not None:
            scores["all"] = float(scores["type"] == 1.0 and scores["label"] == 1.0)
            if scores["all"]:
                break
    return scores


def strict_step(predict: str, labels: Sequence[str], words: Words = cut_words) -> dict[str, float]:
    """Strict scores of a step. With several labels, the scores for the best match."""
    predicted = strict_call(_reply(predict))
    scored = [_strict(predicted, strict_call(text), words) for text in labels]
    return max(scored, key=lambda s: (s["step success"], s["function"], s.get("element", 0.0)))


def _strict(predicted: Call, gold: Call, words: Words) -> dict[str, float]:
    scores = {"function": float(predicted.function == gold.function)}
    right = predicted.function == gold.function
    if gold.element is not None:
        scores["element"] = float(predicted.element == gold.element)
        right = right and predicted.element == gold.element
    if gold.parameter is not None:
        said = "" if predicted.parameter is None else str(predicted.parameter)
        scores["parameter (ROUGE-1 F)"] = rouge_1(said, str(gold.parameter), words)
        if gold.function in _CHOSEN:
            right = right and said.strip().casefold() == str(gold.parameter).strip().casefold()
    return {**scores, "step success": float(right)}


def _reply(predict: str) -> str:
    return predict.split("A: ")[-1].strip()


def step_values(predict: str, labels: Sequence[str], words: Words = cut_words) -> dict[str, float]:
    """The official and the strict scores of a reply to one step, for :data:`COLUMNS`. The call is
    the text after the last ``"A: "``; with several labels, any of them is right."""
    official = official_step(predict, labels, words)
    return {**official, **strict_step(predict, labels, words), DROPPED: float(not official)}
