"""``swarm-ui replay``: a recorded decision once more, with something different."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from swarm_ui.cli import exits, flags, replaying
from swarm_ui.cli.output import Output, table
from swarm_ui.cli.replaying import Changes, Replayed


def replay(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="a run's folder, or a trace file")],
    episode: Annotated[int, typer.Option("--episode", "-e", metavar="N", min=1,
                                         help="which of the file")] = 1,
    step: Annotated[int, typer.Option("--step", "-s", metavar="N", min=1,
                                      help="which decision of it")] = 1,
    say: Annotated[list[str] | None, typer.Option(metavar="ID=TEXT", help="this message says "
                   "something else; repeatable")] = None,
    without: Annotated[list[str] | None, typer.Option(metavar="ID", help="nobody hears this "
                       "message; repeatable")] = None,
    add: Annotated[list[str] | None, typer.Option(metavar="A>B", help="one more edge; "
                   "repeatable")] = None,
    cut: Annotated[list[str] | None, typer.Option(metavar="A>B", help="one edge fewer; "
                   "repeatable")] = None,
    model: flags.Model = None,
    url: flags.Url = None,
    again: Annotated[bool, flags.option("--again", help="ask every agent again",
                                         panel="")] = False,
    config: flags.ConfigFile = None,
    settings: flags.Set = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE",
                   help="write the new trace: JSON lines")] = None,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Run one recorded decision again with something changed; only what hears the change is asked.

    With no change, nothing is asked and the decision is the same. Without --say, ids are listed.
    Example: [bold]swarm-ui replay runs/demo -e 2 -s 3 --cut 'agent_0>agent_1'[/]
    """
    output = Output(machine=json)
    changes = Changes(
        say=dict(replaying.spoken(text) for text in say or ()),
        without=tuple(without or ()),
        add=tuple(add or ()),
        cut=tuple(cut or ()),
        again=again or model is not None or url is not None,
    )
    overrides = flags.draft(config, settings, model=model, url=url)
    done = asyncio.run(replaying.replayed(trace, episode, step, changes, overrides))
    output.show(_table(done))
    same = done.before.action == done.after.action
    told = "the decision is the same" if same else "the decision is another"
    output.show(Text(f"{told}; {done.asked} of {len(done.after.calls)} calls were made again"))
    if out is not None:
        from swarm_ui.trace.jsonl import write_jsonl

        write_jsonl(out, [done.after])
        output.say(Text(f"wrote {out}", overflow="fold"))
    output.record({"ok": True, "exit": exits.OK, "same": same, "asked": done.asked,
                   "before": _json(done.before.action), "after": _json(done.after.action),
                   "messages": replaying.messages(done)})  # fmt: skip
    return exits.OK


def _table(done: Replayed) -> Table:
    """Every message before and after; those that differ stand out."""
    made = table(
        f"{done.before.observation.goal}", ["message", "before", "after"],
        caption="Bold: it says something else.",
    )  # fmt: skip
    for column in made.columns[1:]:
        column.justify = "left"
    for row in replaying.messages(done):
        style = "bold" if row["before"] != row["after"] else ""
        made.add_row(row["id"], row["before"], row["after"], style=style)
    made.add_section()
    made.add_row("decision", _short(done.before.action), _short(done.after.action))
    return made


def _json(action: object) -> str | None:
    return None if action is None else str(action)


def _short(action: object) -> str:
    return "none" if action is None else str(action)
