"""``swarm-ui answer``: the questions that runs of graphs wait for, and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import expect_file_place, write_trace
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.stored.answering import OpenQuestion, open_questions
from swarm_ui.experiment.stored.answering import answer as answer_question


def answer(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="the file of a Journal")],
    run: Annotated[str, typer.Argument(metavar="RUN", help="name of the run; without it, the open "
                   "questions of all runs are listed")] = "",
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="the answer; without it, the "
                    "run's open questions are shown")] = None,
    node: Annotated[str, typer.Option("--node", metavar="ID", help="id of the question, or its "
                    "node (default: the only open question)")] = "",
    graph: Annotated[str, typer.Option("--graph", "-g", metavar="MODULE:NAME", help="the graph "
                     "that made the run, or a function that returns it; needed to answer (default: "
                     "none)")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="JSON lines file "
                   "for the trace of the finished run")] = None,
    force: flags.Force = False,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Answer a question that a paused run of a graph waits for, and continue the run.

    The answer and every call are written before the run continues. The module of the graph is
    imported from the current folder or where it is installed.
    Example: [bold]swarm-ui answer letters.jsonl letter/1 yes --graph team:graph[/]
    """
    output = Output(machine=json)
    if text is None:
        found = open_questions(journal, run)
        _show(output, found, journal, whole=bool(run))
        return output.done(questions=msgspec.to_builtins(found))
    if not graph:
        raise ConfigError(
            "--graph MODULE:NAME: name the graph that made the run, as a CollabGraph or a function "
            "that returns one; the calls that wait for the answer need its nodes"
        )
    expect_file_place(out, force)  # an answer cannot be given twice
    done = asyncio.run(answer_question(journal, run, text, graph, node))
    output.say(f"answered {done.answered}")
    document: dict[str, object] = {"run": run, "answered": done.answered}
    if done.trace is None:
        _show(output, done.questions, journal, whole=True)
        waiting = msgspec.to_builtins(done.questions)
        return output.done(**document, finished=False, output=None, questions=waiting)
    if done.trace.output is not None:
        output.show(Text(done.trace.output, overflow="fold"))
    output.say(f"finished: {done.trace!r}")
    write_trace(out, done.trace, output)
    return output.done(**document, finished=True, output=done.trace.output, questions=[])


def _show(output: Output, found: Sequence[OpenQuestion], journal: Path, *, whole: bool) -> None:
    """List questions: ``whole``, with their whole text; else with their first lines."""
    if not found:
        output.show(Text("no question is open"))
        return
    made = table(str(journal), ["run", "id", "question"], left=True)
    for question in found:
        lines = question.text.splitlines() or [""]
        made.add_row(question.run, question.id, question.text if whole else lines[0])
    output.show(made)
    several = len([q for q in found if q.run == found[0].run]) > 1
    words = ["swarm-ui", "answer", str(journal), found[0].run, "TEXT"]
    words += ["--node", found[0].id] if several else []
    output.command("to answer", *words, "--graph", "MODULE:NAME")
