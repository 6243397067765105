"""``answer``: a person answers what a paused run asks, from another process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_world import Shell, shell  # noqa: F401

from swarm_ui import CollabGraph, Journal, Message, RunPaused
from swarm_ui.nodes import Ask, Map, function_node
from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Trace

CALLS: list[str] = []


@function_node
def writer(inbox: Sequence[Message], context: object) -> str:
    CALLS.append("writer")
    return "Dear <b>Ada</b>"


@function_node
def send(inbox: Sequence[Message], context: object) -> str:
    CALLS.append("send")
    return " ".join(message.content for message in inbox)


approve = Ask("approve", "Send this letter?", options=("yes", "no"))
letters = CollabGraph(
    [writer, approve, send], [("writer", "approve"), ("writer", "send"), ("approve", "send")]
)
changed = CollabGraph([approve, send], [("approve", "send")])
names = CollabGraph([Ask("who", "From whom?"), Ask("to", "To whom?"), send],
                    [("who", "send"), ("to", "send")])  # fmt: skip
each = Map("each", CollabGraph([Ask("ok", "ok?")]), over=lambda message: ["x", "y"])
items = CollabGraph([writer, each], [("writer", "each")])
turns = CollabGraph([Ask("more", "More?")], rounds=2)


def made() -> CollabGraph:
    return letters


def other() -> str:
    return "no graph"


def broken() -> CollabGraph:
    raise LookupError("no settings")


def pause(graph: CollabGraph, journal: Journal, run: str) -> None:
    with pytest.raises(RunPaused):
        asyncio.run(graph.run("thank Ada", run_id=run, journal=journal))


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_a_question_is_listed_and_answered(shell: Shell) -> None:  # noqa: F811
    pause(letters, Journal("kept"), "letter/1")
    pause(letters, Journal("kept"), "letter/2")
    found = shell("answer kept --json").json["questions"]
    assert [(q["run"], q["id"]) for q in found] == [("letter/1", "approve:0"),
                                                    ("letter/2", "approve:0")]  # fmt: skip
    done = shell("answer kept letter/1")
    assert "Send this letter?" in done.out and "writer: Dear <b>Ada</b>" in done.out
    assert "to answer: swarm-ui answer kept letter/1 TEXT --graph MODULE:NAME" in done.err
    CALLS.clear()
    refused = shell("answer kept letter/1 maybe --graph test_cli_answer:letters")
    assert refused.code == 2 and "expected one of 'yes', 'no'" in refused.err
    done = shell("answer kept letter/1 yes --graph test_cli_answer:letters --out trace.jsonl")
    assert done.code == 0 and done.out.strip() == "Dear <b>Ada</b> yes"
    assert CALLS == ["send"], "what was done is not done again"
    assert read_jsonl(Path("trace.jsonl"), Trace)[0].output == "Dear <b>Ada</b> yes"
    assert [q["run"] for q in shell("answer kept --json").json["questions"]] == ["letter/2"]
    again = shell("answer kept letter/1 no --graph test_cli_answer:letters")
    assert again.code == 2 and "'letter/1' is not waiting for an answer" in again.err
    function = shell("answer kept letter/2 no --graph test_cli_answer:made --json").json
    assert (function["finished"], function["output"]) == (True, "Dear <b>Ada</b> no")
    assert shell("answer kept").out.strip() == "no question is open"


def test_an_answer_is_not_given_if_its_trace_cannot_be_written(shell: Shell) -> None:  # noqa: F811
    pause(letters, Journal("kept"), "letter")
    words = "answer kept letter yes --graph test_cli_answer:letters --out"
    done = shell(f"{words} right.txt/trace.jsonl")
    assert done.code == 2 and "right.txt/trace.jsonl" in done.err, done.err
    assert len(shell("answer kept letter --json").json["questions"]) == 1
    assert shell(f"{words} new/trace.jsonl").code == 0
    assert read_jsonl(Path("new/trace.jsonl"), Trace)[0].output == "Dear <b>Ada</b> yes"


def test_one_of_several_questions_is_named(shell: Shell) -> None:  # noqa: F811
    journal = Journal("kept")
    pause(names, journal, "r")
    shown = shell("answer kept r")
    assert "answer kept r TEXT --node who:0" in shown.err
    done = shell("answer kept r Bob --graph test_cli_answer:names")
    assert done.code == 2 and "name one of the nodes with --node: who:0, to:0" in done.err
    done = shell("answer kept r Bob --node nobody --graph test_cli_answer:names")
    assert done.code == 2 and "no open question of 'nobody'; it has who:0, to:0" in done.err
    first = shell("answer kept r Bob --node who --graph test_cli_answer:names --json").json
    assert (first["answered"], first["finished"]) == ("who:0", False)
    assert [q["id"] for q in first["questions"]] == ["to:0"]
    # The first answer is kept: only the second question is left.
    assert [q["id"] for q in shell("answer kept r --json").json["questions"]] == ["to:0"]
    last = shell("answer kept r Ada --graph test_cli_answer:names --json").json
    assert (last["finished"], last["output"]) == (True, "Bob Ada")
    pause(items, journal, "i")
    done = shell("answer kept i fine --node each/ok --graph test_cli_answer:items")
    assert done.code == 2 and "name one of the nodes with --node: each:0/item:0/ok:0" in done.err
    for number in (0, 1):
        id = f"each:0/item:{number}/ok:0"
        done = shell(f"answer kept i fine{number} --node {id} --graph test_cli_answer:items")
        assert done.code == 0, done.err
    assert '["fine0", "fine1"]' in done.out


def test_an_answer_may_lead_to_the_next_question(shell: Shell) -> None:  # noqa: F811
    pause(turns, Journal("kept"), "r")
    first = shell("answer kept r yes --node more --graph test_cli_answer:turns --json").json
    assert [q["id"] for q in first["questions"]] == ["more:1"], "one answer for one question"
    assert shell("answer kept r no --graph test_cli_answer:turns").out.strip() == "no"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere", "there is no journal nowhere"),
        ("right.txt", "right.txt: not a journal"),
        ("kept other", "there is no run 'other'"),
        ("kept letter/1 yes", "--graph MODULE:NAME: name the graph"),
        ("kept letter/1 yes --graph nowhere:team", "no module 'nowhere'"),
        ("kept letter/1 yes --graph test_cli_answer:missing", "has no 'missing'"),
        ("kept letter/1 yes --graph test_cli_answer:other", "is a str; expected a CollabGraph"),
        ("kept letter/1 yes --graph test_cli_answer:broken", "LookupError: no settings ("),
        ("kept letter/1 yes --graph test_cli_answer:names", "'approve' is not in the graph"),
        ("kept letter/1 yes --graph test_cli_answer:changed", "another graph"),
    ],
)
def test_what_cannot_be_answered(shell: Shell, words: str, said: str) -> None:  # noqa: F811
    journal = Journal("kept")
    pause(letters, journal, "letter/1")
    before = sorted(shell.folder.rglob("*"))
    done = shell(f"answer {words}")
    told = " ".join(done.err.split())
    assert done.code == 2 and said in told, told
    assert sorted(shell.folder.rglob("*")) == before, "nothing is created"
    assert len(shell("answer kept --json").json["questions"]) == 1
