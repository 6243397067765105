"""``swarm-ui replay``: runs a recorded decision again with changes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import expect_file_place, writing
from swarm_ui.cli.output import table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.replaying import (
    Changes,
    Replayed,
    messages,
    parse_change,
    replay_decision,
)
from swarm_ui.trace.jsonl import write_jsonl

_OF_MODEL = re.compile(r"^(--\S+ )?model\.")
"""A setting of the model: another one has to answer again."""


@flags.command(
    flags.words("TRACE [SETTING=VALUE...]", "a run's folder, or a trace file; settings as "
                "team.agents=4", flags.one_of()),
    flags.Option("episode", int, typer.Option("--episode", "-e", metavar="N", min=1,
                                              help="number of the episode in the file"), default=1),
    flags.Option("step", int, typer.Option("--step", "-s", metavar="N", min=1,
                                           help="number of the decision in it"), default=1),
    flags.option("say", list[str], "ID=TEXT", "replace the text of this message; repeatable",
                 panel=""),
    flags.option("without", list[str], "ID", "do not deliver this message to any node; repeatable",
                 panel=""),
    flags.option("add", list[str], "A>B", "add this edge; repeatable", panel=""),
    flags.option("cut", list[str], "A>B", "remove this edge; repeatable", panel=""),
    flags.MODEL,
    flags.URL,
    flags.switch("again", "--again", help="call every agent again", panel=""),
    flags.TRUST,
    flags.CONFIG,
    flags.option("out", Path, "FILE", "JSON lines file for the new trace", "-o", panel=""),
    flags.switch("force", "--force", help="replace an existing file", panel=""),
    flags.JSON,
    defaults={"model.name": "that of the run"},
)  # fmt: skip
def replay(arguments: flags.Arguments) -> int:
    """Run one recorded decision again with a change; only the affected calls are made again.

    Without a change no model is called and the decision is the same. The output
    lists the ids of the messages.
    Example: [bold]swarm-ui replay runs/team -e 2 -s 3 --cut 'agent_0>agent_1'[/]
    """
    output, out = arguments.output, arguments["out"]
    if out is not None:
        expect_file_place(out, arguments["force"])  # before calls are made
    changes = Changes(
        say=dict(parse_change(text) for text in arguments["say"] or ()),
        without=tuple(arguments["without"] or ()),
        add=tuple(arguments["add"] or ()),
        cut=tuple(arguments["cut"] or ()),
        again=arguments["again"] or any(map(_OF_MODEL.search, arguments.overrides)),
    )
    if len(arguments.words) != 1:
        raise ConfigError("name one run's folder, or one trace file")
    where = (Path(arguments.words[0]), arguments["episode"], arguments["step"])
    done = asyncio.run(
        replay_decision(
            *where,
            changes,
            arguments.overrides,
            file=arguments["config"],
            trusted=arguments["trust"],
        )
    )
    output.show(_table(done))
    what, before, after = _results(done)
    same = done.before.action == done.after.action and before == after
    verdict = f"the {what} is the same" if same else f"the {what} is different"
    output.show(
        Text(f"{verdict}; {done.requests} of {len(done.after.calls)} calls were made again")
    )
    if out is not None:
        with writing(out):
            write_jsonl(out, [done.after])
        output.say(f"wrote {out}")
    return output.done(
        same=same, asked=done.requests, before=before, after=after, messages=messages(done)
    )


def _table(done: Replayed) -> Table:
    """Every message before and after; messages that differ are bold."""
    made = table(
        done.before.observation.goal,
        ["message", "before", "after"],
        caption="Bold: the message has changed.",
        left=True,
    )
    for row in messages(done):
        style = "bold" if row["before"] != row["after"] else ""
        made.add_row(row["id"], row["before"], row["after"], style=style)
    made.add_section()
    what, *both = _results(done)
    made.add_row(what, *(text or "none" for text in both))
    return made


def _results(done: Replayed) -> tuple[str, str | None, str | None]:
    """The result before and after the change: the decision, or the output if it was not an
    action."""
    actions = [trace.action for trace in (done.before, done.after)]
    if any(action is not None for action in actions):
        before, after = (None if action is None else str(action) for action in actions)
        return "decision", before, after
    return "output", done.before.output, done.after.output
