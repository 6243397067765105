"""The questions that runs of graphs in a journal wait for, and their answers."""

from __future__ import annotations

from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError, RunPaused
from swarm_ui.experiment.user_code import graph_named
from swarm_ui.message import Question
from swarm_ui.storage.journal import Journal
from swarm_ui.trace.records import Trace


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a run waits for."""

    run: str
    id: str
    """Id of the message that will hold the answer."""
    node: str
    round: int
    text: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A run after an answer."""

    answered: str
    """Id of the question."""
    trace: Trace | None
    """``None``: the run waits for more answers."""
    questions: tuple[OpenQuestion, ...] = ()
    """The questions that are open now."""


def open_questions(path: Path, run: str = "") -> list[OpenQuestion]:
    """The open questions of a run of a journal, or of all its runs, the oldest first.

    Raises:
        ConfigError: there is no such journal or run.
        TraceError: the journal is damaged.
    """
    journal = Journal(path)
    records = [journal.read(run)] if run else journal.runs()
    return [_of(r.head.run, question) for r in records for question in r.questions.values()]


async def answer(path: Path, run: str, text: str, graph: str, node: str = "") -> Answered:
    """Answer a question of a run, and make the calls that it waits for.

    Args:
        path: the journal.
        run: name of the run.
        text: the answer.
        graph: ``module:name`` of the graph that made the run; its module is imported.
        node: id of the question, or its node. It may be empty if only one question is open.

    Raises:
        ConfigError: there is no such question or graph, or the answer is not allowed.
    """
    question = _chosen(open_questions(path, run), run, node)
    team = graph_named(graph)
    try:
        trace = await team.resume(run, {question.id: text}, journal=Journal(path))
    except RunPaused as paused:
        left = tuple(_of(run, each) for each in paused.questions)
        return Answered(answered=question.id, trace=None, questions=left)
    return Answered(answered=question.id, trace=trace)


def _chosen(questions: list[OpenQuestion], run: str, node: str) -> OpenQuestion:
    if not questions:
        raise ConfigError(
            f"the run '{run}' is not waiting for an answer; only a paused run has an open question"
        )
    found = [q for q in questions if node in ("", q.id)] or [q for q in questions if q.node == node]
    if len(found) == 1:
        return found[0]
    known = ", ".join(q.id for q in questions)
    if not found:
        raise ConfigError(f"the run '{run}' has no open question of '{node}'; it has {known}")
    raise ConfigError(
        f"the run '{run}' waits for several answers; name one of the nodes with --node: {known}"
    )


def _of(run: str, question: Question) -> OpenQuestion:
    return OpenQuestion(
        run=run, id=question.id, node=question.node, round=question.round, text=question.text
    )
