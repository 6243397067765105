"""AutoWebBench's calls and metrics, by hand and on hostile text."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from swarm_ui import ConfigError
from swarm_ui.environments.autowebbench import (
    Call,
    Prediction,
    official_call,
    official_step,
    score_predictions,
    strict_call,
    strict_step,
)
from swarm_ui.environments.autowebbench import metrics as autowebbench_metrics
from swarm_ui.environments.autowebbench.metrics import cut_words, rouge_1
from swarm_ui.environments.mind2web import metrics as mind2web_metrics

# ---- calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("click('SD')", Call("click", "SD")),
        ("hover('SD')", Call("hover", "SD")),
        ("select('A', 'two')", Call("select", "A", "two")),
        ('type_string("A", "it\'s", True)', Call("type_string", "A", "it's")),
        ("scroll_page('down')", Call("scroll_page", None, "down")),
        ("go('backward')", Call("go", None, "backward")),
        ("jump_to('https://a.b', False)", Call("jump_to", None, "https://a.b")),
        ("switch_tab(1)", Call("switch_tab", None, 1)),
        ("user_input('Please log in.')", Call("user_input", None, "Please log in.")),
        ("finish('done')", Call("finish", None, "done")),
        ("finish(None)", Call("finish")),
        ("fly('A')", Call("fly")),
        ("click('A') # because (of that)", Call("click", "A")),
        ("click('A')\nbecause", Call("click", "A")),
        ("I would wait.", Call()),
        ("", Call()),
    ],
)
def test_calls_that_both_scorers_read_alike(text: str, call: Call) -> None:
    assert official_call(text) == strict_call(text) == call


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("finish()", Call("finish")),
        ("select('A')", Call("select", "A")),
        ("click()", Call("click")),
        ("click(A)", Call()),
        ("click(element_id='A')", Call()),
        ("click(*['A'])", Call()),
        ("click('A') or click('B')", Call()),
        ("click('A'", Call()),
        ("click('A)", Call()),
        ("click('A'), hover('B')", Call()),
    ],
)
def test_what_the_official_scorer_drops_is_wrong_or_incomplete_here(
    text: str, strict: Call
) -> None:
    assert official_call(text) in (None, Call()) and strict_call(text) == strict


def test_a_line_break_in_a_text_is_read_only_strictly() -> None:
    text = "finish('one\ntwo')"
    assert official_call(text) == Call()  # its pattern ends at the line, so it sees no call at all
    assert strict_call(text) == Call("finish", None, "one\ntwo")


def test_nothing_in_a_reply_is_ever_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for text in (
        f"click(open({str(mark)!r}, 'w').write('x'))",
        f"click(__import__('pathlib').Path({str(mark)!r}).touch())",
        f"finish([p.touch() for p in [__import__('pathlib').Path({str(mark)!r})]])",
        "click(9**9**9)",
        "click(" + "(" * 5000 + ")" * 5000 + ")",
        "click('\\d')",
        "click('\0')",
    ):
        assert official_call(text) in (None, Call("click", "\\d"), Call())
        assert strict_call(text) in (Call(), Call("click", "\\d"))
    assert not mark.exists()


# ---- words ----------------------------------------------------------------------------------


def test_rouge_by_hand() -> None:
    # 3 of 4 words of the one are 3 of 5 of the other.
    assert rouge_1("the park opens .", "the park opens at 8") == pytest.approx(
        2 * 0.75 * 0.6 / (0.75 + 0.6), abs=1e-7
    )
    assert rouge_1("a a b", "a b b") == pytest.approx(1.0, abs=1e-7)  # sets of words
    assert rouge_1("a", "b") == rouge_1("", "b") == rouge_1("", "") == 0.0
    assert rouge_1("上海买房", "上海租房") == pytest.approx(0.75, abs=1e-7)
    assert cut_words("iPhone15，3.5 km") == ["iPhone15", "，", "3", ".", "5", "km"]
    assert rouge_1("ab cd", "ab", words=lambda text: [text]) == 0.0


# ---- steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predict", "label", "official", "strict"),
    [
        ("click('A')", "click('A')",
         {"type": 1, "label": 1, "all": 1}, {"function": 1, "element": 1, "step success": 1}),
        ("Because.\nA: click('A')", "click('A')",
         {"type": 1, "label": 1, "all": 1}, {"function": 1, "element": 1, "step success": 1}),
        ("hover('A')", "click('A')",
         {"type": 0, "label": 1, "all": 0}, {"function": 0, "element": 1, "step success": 0}),
        ("I give up", "click('A')",
         {"type": 0, "label": 0, "all": 0}, {"function": 0, "element": 0, "step success": 0}),
        # Unreadable: dropped there, wrong here.
        ("click(A)", "click('A')",
         {}, {"function": 0, "element": 0, "step success": 0}),
        # What is typed counts only here, but for case.
        ("type_string('A', 'x', False)", "type_string('A', 'y', False)",
         {"type": 1, "label": 1, "all": 1},
         {"function": 1, "element": 1, "parameter (ROUGE-1 F)": 0, "step success": 0}),
        ("type_string('A', ' Elm ISLAND', True)", "type_string('A', 'elm island', False)",
         {"type": 1, "label": 1, "all": 1},
         {"function": 1, "element": 1, "parameter (ROUGE-1 F)": 0, "step success": 1}),
        # Steps without an element have no 'all'; a message may be worded freely.
        ("scroll_page('up')", "scroll_page('down')",
         {"type": 1}, {"function": 1, "parameter (ROUGE-1 F)": 0, "step success": 0}),
        ("finish('it is 8')", "finish('8')",
         {"type": 1, "param": 0.5}, {"function": 1, "parameter (ROUGE-1 F)": 0.5,
                                     "step success": 1}),
        # finish() has no argument to look at, so the official scorer drops it, even if right.
        ("finish()", "finish()", {}, {"function": 1, "step success": 1}),
        ("click('A')", "finish()", {}, {"function": 0, "step success": 0}),
        ("switch_tab(1)", "scroll_page('down')",
         {"type": 0}, {"function": 0, "parameter (ROUGE-1 F)": 0, "step success": 0}),
    ],
)  # fmt: skip
def test_steps_by_hand(
    predict: str, label: str, official: dict[str, float], strict: dict[str, float]
) -> None:
    assert official_step(predict, [label]) == pytest.approx(official, abs=1e-7)
    assert strict_step(predict, [label]) == pytest.approx(strict, abs=1e-7)


def test_alternative_labels() -> None:
    labels = ["click('A')", "click('B')", "hover('C')"]
    # The official scorer stops at a full match, and otherwise keeps what the last label said.
    assert official_step("click('B')", labels) == {"type": 1, "label": 1, "all": 1}
    assert official_step("click('D')", labels) == {"type": 0, "label": 0, "all": 0}
    assert strict_step("click('B')", labels) == {"function": 1, "element": 1, "step success": 1}
    assert strict_step("click('D')", labels) == {"function": 1, "element": 0, "step success": 0}
    with pytest.raises(ConfigError, match="a label must be a call"):
        strict_step("click('A')", ["nothing"])


def test_a_table_by_hand() -> None:
    """Two tasks, both denominators::

    t1  click('A')  for click('A')                official all 1   strict 1
        finish()    for finish()                  dropped          1
        click('B')  for click('C')                all 0            0
    t2  click(A)    for click('A')                dropped          0
        go('forward') for go('backward')          type only        0
    """
    rows = [
        ("t1", "click('A')", "click('A')"),
        ("t1", "finish()", "finish()"),
        ("t1", "click('B')", "click('C')"),
        ("t2", "click(A)", "click('A')"),
        ("t2", "go('forward')", "go('backward')"),
    ]
    scores = score_predictions(
        [Prediction(task=t, predict=predict, labels=(label,)) for t, predict, label in rows]
    )
    by_hand = {
        "type": 3 / 3,
        "label": 1 / 2,
        "all": 1 / 2,
        "strict function (micro)": 4 / 5,
        "strict element (micro)": 1 / 3,
        "strict step success (micro)": 2 / 5,
        "strict step success (macro)": (2 / 3 + 0) / 2,
        "strict task success": 0.0,
    }
    assert {k: scores[k].value for k in by_hand} == pytest.approx(by_hand)
    assert (scores["all"].steps, scores["type"].steps) == (2, 3)
    assert scores.counts == {"steps": 5, "dropped by the official scorer": 2}
    with pytest.raises(KeyError, match="param"):  # 'go' against 'go': nothing in common, left out
        scores["param"]


def test_the_examples_in_the_formulas_hold() -> None:
    for module in (autowebbench_metrics, mind2web_metrics):
        assert doctest.testmod(module).failed == 0 < doctest.testmod(module).attempted
