"""AutoWebBench: its pages behind the environment contract, its calls and metrics by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swarm_ui import Action, ConfigError
from swarm_ui.environments.recorded.autowebbench import (
    AutoWebBench,
    read_commands,
    read_page,
    synthetic,
)
from swarm_ui.environments.recorded.autowebbench_scores import (
    Call,
    cut_words,
    official_call,
    official_step,
    rouge_1,
    strict_call,
    strict_step,
)
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE

SOURCE = """{page}

You are a helpful assistant that can assist with web navigation tasks.

#Previous commands: {commands}

#Window tabs: 1. Mail
2. Shop <-- current tab

#Current viewport (pages): 1.0 / 2.0

#Task: {task}

You should output one command to interact to the currrent webpage."""


def step(
    target: str | list[str], *, page: str = "<a[A]| One> <a[B]| Two>", commands: str = "None",
    task: str = "Do it.",
) -> dict[str, Any]:  # fmt: skip
    return {"source": SOURCE.format(page=page, commands=commands, task=task), "target": target}


def write(folder: Path, steps: list[dict[str, Any]], **options: Any) -> AutoWebBench:
    path = folder / "test.json"
    path.write_text(json.dumps(steps), encoding="utf-8")
    return AutoWebBench(path, **options)


def test_texts_of_a_page_belong_to_the_nearest_element_one_can_act_on() -> None:
    elements, ids = read_page(
        "Top < <div| Price: <b| 9> euro <a[SD]| < <span| Buy> now > <img| > > > "
        "<li[E]| Menu <a[F]| Inner> > > > <input[G]| > <p| 3 > 2>"
    )
    assert [(e.text, i, e.role, e.clickable) for e, i in zip(elements, ids, strict=True)] == [
        ("Top 2", "", "text", False),  # "3 > 2" closes the paragraph early; no id is lost
        ("Price: euro", "", "text", False),
        ("9", "", "text", False),
        ("Buy now", "SD", "link", True),
        ("Menu", "E", "item", True),
        ("Inner", "F", "link", True),
        ("", "G", "field", True),
        ("3", "", "text", False),
    ]
    assert [e.editable for e in elements] == [False] * 6 + [True, False]


def test_recorded_commands_become_history() -> None:
    commands = (
        "click('AE') #HTML Segment: <a[AE]| Our Mission>\n"
        "type_string('F', 'two\nlines', False) #HTML Segment: <input[F]| Search>\n"
        "scroll_page('down')\ngo('backward')\ngo('forward')\n"
        "user_input('Please log in.')\njump_to('https://a.b', False)"
    )
    assert [str(past.action) for past in read_commands(commands)] == [
        "click “Our Mission” [0]",
        "input_text “Search” [0] 'two\\nlines'",
        "scroll down",
        "navigate_back",
        "wait \"go('forward')\"",
        "status 'Please log in.' infeasible",
        "open_app https://a.b",
    ]
    assert read_commands("None") == ()


@pytest.mark.parametrize(
    ("label", "action"),
    [
        ("click('B')", Action(action_type="click", index=1)),
        ("hover('B')", Action(action_type="long_press", index=1)),
        ("type_string('B', 'x', False)", Action(action_type="input_text", index=1, text="X ")),
        ("select('B', 'x')", Action(action_type="select", index=1, text="x")),
        ("scroll_page('up')", Action(action_type="scroll", direction="up")),
        ("go('backward')", Action(action_type="navigate_back")),
        ("jump_to('https://a.b', True)", Action(action_type="open_app", app_name="https://a.b")),
        ("finish()", Action(action_type="status", goal_status="complete")),
        ("finish('it')", Action(action_type="answer", text="that")),
        ("finish()", Action(action_type="answer", text="nobody asked")),
        ("user_input('Log in')", Action(action_type="status", goal_status="infeasible")),
    ],
)
def test_every_function_has_an_action(tmp_path: Path, label: str, action: Action) -> None:
    gold = write(tmp_path, [step(label), step("click('A')", commands="click('B')")])
    first, other = gold.load("en/ind/000")
    assert first.right(action) and first.right(first.expert) and not first.remark(action)
    assert not other.right(action) and other.right(other.expert)


def test_steps_come_in_the_order_of_their_commands_whatever_the_file_does(tmp_path: Path) -> None:
    steps = [
        step("finish()", commands="click('A')\nclick('B')"),
        step("click('A')", task="Other."),
        step("click('A')"),
        step(["click('B')", "click('A')"], commands="click('A')"),
    ]
    data = write(tmp_path, steps)
    assert list(data.tasks) == ["en/ind/000", "en/ind/001"]
    labels = [gold.labels for gold in data.load("en/ind/000")]
    assert labels == [("click('A')",), ("click('B')", "click('A')"), ("finish()",)]


def test_what_no_action_says_counts_as_wrong(tmp_path: Path) -> None:
    page = "<p| Only text> <a[A]| One>"
    data = write(
        tmp_path,
        [
            step("go('forward')"),
            step("switch_tab(1)", commands="x('y')"),
            step("click('A')", page=page, task="Other."),
        ],
    )
    for gold in data.load("en/ind/000"):
        assert gold.expert == NONE_OF_THESE and not gold.right(gold.expert)
        assert gold.past.action.text == gold.labels[0]
    (gold,) = data.load("en/ind/001")
    for action in (
        Action(action_type="click", index=0),  # it has no id
        Action(action_type="click", x=1, y=2),
        Action(action_type="scroll", direction="left"),
        NONE_OF_THESE,
    ):
        assert gold.remark(action) and not gold.right(action)


@pytest.mark.parametrize(
    "content",
    [
        [step("click('A')"), {"source": "x"}],
        [step("click")],
    ],
)
def test_data_that_is_wrong_is_named(tmp_path: Path, content: Any) -> None:
    (tmp_path / "test.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"test\.json"):
        _ = AutoWebBench(tmp_path / "test.json").tasks
    for root, split in ((tmp_path, "en/ind"), (synthetic(), "fr/ind")):
        with pytest.raises(ConfigError):
            AutoWebBench(root, split)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        AutoWebBench(synthetic()).load("x")


# ---- calls ----------------------------------------------------------------------------------

BOTH = {
    "click('SD')": Call("click", "SD"),
    "select('A', 'two')": Call("select", "A", "two"),
    'type_string("A", "it\'s", True)': Call("type_string", "A", "it's"),
    "scroll_page('down')": Call("scroll_page", None, "down"),
    "jump_to('https://a.b', False)": Call("jump_to", None, "https://a.b"),
    "switch_tab(1)": Call("switch_tab", None, 1),
    "finish(None)": Call("finish"),
    "fly('A')": Call("fly"),
    "click('A') # because (of that)": Call("click", "A"),
    "click('A')\nbecause": Call("click", "A"),
    "I would wait.": Call(),
    "": Call(),
}
"""Calls that both scorers read alike."""
STRICT = {
    "finish()": Call("finish"),
    "select('A')": Call("select", "A"),
    "click()": Call("click"),
    "click(A)": Call(),
    "click(element_id='A')": Call(),
    "click(*['A'])": Call(),
    "click('A') or click('B')": Call(),
    "click('A'": Call(),
    "click('A)": Call(),
    "click('A'), hover('B')": Call(),
}
"""Calls that the official scorer drops or does not see, and that are wrong or incomplete here."""


@pytest.mark.parametrize("text", [*BOTH, *STRICT])
def test_calls(text: str) -> None:
    assert strict_call(text) == {**BOTH, **STRICT}[text]
    assert official_call(text) in ([BOTH[text]] if text in BOTH else [None, Call()])


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
