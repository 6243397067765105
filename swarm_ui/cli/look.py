"""``view``, ``runs``, ``replay`` and ``export``: what runs did."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from pathlib import Path
from typing import get_args

import msgspec
from rich.table import Table
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output, expect_new, table, writing
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import exporting, stored
from swarm_ui.experiment.progress import duration_text
from swarm_ui.experiment.replaying import Changes, messages, replay_decision
from swarm_ui.experiment.stored import STATES, RunSnapshot, RunSummary
from swarm_ui.files import replacing
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import write_jsonl
from swarm_ui.trace.records import Episode, StepRecord
from swarm_ui.viz.svg import counted

_SECONDS = 5
"""Time between two reports of a run that is followed."""
_STYLES = {"running": "cyan", "finished": "green", "killed": "yellow", "interrupted": "yellow"}
_OF_MODEL = re.compile(r"^(--\S+ )?model\.")
"""A setting of the model: another one has to answer again."""
_BOOTSTRAP = "95 % intervals: bootstrap over tasks and their episodes."


@flags.command(
    flags.words("RUN...", "runs' folders, or trace files; the others are compared with the first",
                flags.one_of()),
    flags.option("out", Path, "FILE", "the page (default: report.html in the folder of the run; of "
                 "several runs: in the present folder)", "-o", panel=""),
    flags.switch("follow", "write the page again every few seconds while the run plays", "-f",
                 panel=""),
    flags.switch("no_open", "do not open the report in the browser", panel=""),
    flags.JSON,
)  # fmt: skip
def view(arguments: flags.Arguments) -> int:
    """Write the report of a run, or of several that are compared, and open it.

    The report is one self-contained HTML file.
    Example: [bold]swarm-ui view runs/one-agent runs/team[/]
    """
    from swarm_ui.experiment.reporting import run_report

    output, show, out = arguments.output, not arguments["no_open"], arguments["out"]
    runs = [Path(word) for word in arguments["words"] or ()]
    if not runs:
        raise ConfigError("name the folder of a run, or a trace file")
    if arguments["follow"] and runs[0].is_dir():
        while stored.state_of(RunDirectory(runs[0]))[0] == "running":
            path = run_report(*runs, to=out, refresh=_SECONDS)
            if show:
                output.open(path)
                show = False
            time.sleep(_SECONDS)
    path = run_report(*runs, to=out)
    output.show(Text(f"report: {path}", overflow="fold"))
    if show:
        output.open(path)
    return output.done(report=str(path))


@flags.command(
    flags.words("[FOLDER]", "one run, or a folder that is searched for runs; default: runs",
                flags.one_of()),
    flags.option("state", list[str], "STATE", f"only these: {', '.join(STATES)}; repeatable "
                 "(default: all)", panel="", complete=flags.one_of(*STATES)),
    flags.JSON,
)  # fmt: skip
def runs(arguments: flags.Arguments) -> int:
    """List runs, the newest first; or show the progress of one run, while it plays or later.

    This only reads files, so it works while another process or machine writes them. The success
    rate of a list is that of all tested episodes; for a training without a test, that of the last
    rollouts. Example: [bold]swarm-ui runs --state killed[/]
    """
    output, states = arguments.output, arguments["state"] or []
    given = next(iter(arguments["words"] or ()), None)
    place = Path(given or "runs")
    if given and stored.looks_like_a_run(place):
        found = stored.snapshot(place)
        _show_run(found, output)
        return output.done(**msgspec.to_builtins(found))
    if unknown := [name for name in states if name not in STATES]:
        raise ConfigError(f"--state {unknown[0]}: expected one of {', '.join(STATES)}")
    listed = stored.runs_in(place) if given or place.is_dir() else []
    listed = [run for run in listed if not states or run.state in states]
    if listed:
        output.show(_runs_table(listed, str(place)))
    else:
        output.say(f"no run in '{place}'" + (" that fits" if states else ""))
    for run in listed:
        if run.problem:
            output.say(f"{run.path}: {run.state}: {run.problem}")
    return output.done(folder=str(place), runs=[msgspec.to_builtins(run) for run in listed])


def _runs_table(found: list[RunSummary], title: str) -> Table:
    notes = [_BOOTSTRAP] if any(run.success for run in found) else []
    if any(run.of.startswith("rollouts") for run in found):
        notes.append("Rollouts are sampled and may be guided: not comparable with a test; Wilson.")
    if any(run.state in ("interrupted", "killed", "failed") for run in found):
        notes.append("--resume RUN continues an unfinished run.")
    columns = ["run", "command", "environment", "begun", "state", "success % [95 %]", "of"]
    rows = [
        (run.path, run.command, run.environment,
         run.created and f"{run.created.astimezone():%Y-%m-%d %H:%M}",
         Text(run.state, style=_STYLES.get(run.state, "red")), run.success, run.of)
        for run in found
    ]  # fmt: skip
    return table(title, columns, rows, left=True, caption=" ".join(notes))


def _show_run(found: RunSnapshot, out: Output) -> None:
    """Show the progress of one run."""
    about = " · ".join(filter(None, ["", found.command, found.environment]))
    state = (found.state, _STYLES.get(found.state, "red"))
    lines = [Text.assemble(f"{found.path}: ", state, about)]
    lines += [Text(line) for line in (found.problem, str(found)) if line]
    for task in found.tasks:
        share = min(1.0, task.done / task.total) if task.total > 0 else 0.0
        said = [f"{share:.0%}", f"{duration_text(task.seconds)} so far", task.note]
        lines.append(Text(f"{task.label}: {', '.join(filter(None, said))}"))
    for line in lines:
        line.overflow = "fold"
        out.show(line)
    notes = [_BOOTSTRAP] if any(each.success for each in found.sets) else []
    if found.state != "finished" and any(each.done != each.total for each in found.sets):
        notes.append("Short episodes end first, so the rate of a set that is not done differs from "
                     "its end; none is shown before a tenth of it is done.")  # fmt: skip
    columns = ["episodes of", "success % [95 %]", "solved", "masked", "done"]
    rows = [
        (each.name, each.success, f"{each.solved:,}/{each.done - each.masked:,}", each.masked,
         f"{each.done:,}/{'?' if each.total is None else f'{each.total:,}'}")
        for each in found.sets
    ]  # fmt: skip
    if rows:
        out.show(table("", columns, rows, caption=" ".join(notes)))


@flags.command(
    flags.words("TRACE [SETTING=VALUE...]", "a run's folder, or a trace file; settings as "
                "team.agents=4", flags.one_of()),
    flags.option("episode", int, "N", "its number in the file", "-e", panel="", least=1, default=1),
    flags.option("step", int, "N", "the decision in it", "-s", panel="", least=1, default=1),
    flags.option("say", list[str], "ID=TEXT", "another text of a message; repeatable", panel=""),
    flags.option("without", list[str], "ID", "nobody hears this message; repeatable", panel=""),
    flags.option("add", list[str], "A>B", "add this edge; repeatable", panel=""),
    flags.option("cut", list[str], "A>B", "remove this edge; repeatable", panel=""),
    flags.MODEL, flags.URL,
    flags.switch("again", "call every agent again", panel=""),
    flags.TRUST, flags.CONFIG,
    flags.option("out", Path, "FILE", "JSON lines file for the new trace", "-o", panel=""),
    flags.FORCE, flags.JSON,
)  # fmt: skip
def replay(arguments: flags.Arguments) -> int:
    """Run one recorded decision again with a change; only the affected calls are made again.

    Without a change no model is called and the decision is the same. The output
    lists the ids of the messages.
    Example: [bold]swarm-ui replay runs/team -e 2 -s 3 --cut 'agent_0>agent_1'[/]
    """
    output, out, overrides = arguments.output, arguments["out"], arguments.overrides
    if out is not None:
        expect_new(out, arguments["force"])  # before calls are made
    pairs = [text.partition("=") for text in arguments["say"] or ()]
    if wrong := [id for id, equals, _ in pairs if not equals]:
        raise ConfigError(f"--say {wrong[0]}: expected ID=TEXT")
    changes = Changes(
        say={id: text for id, _, text in pairs},
        **{name: tuple(arguments[name] or ()) for name in ("without", "add", "cut")},
        again=arguments["again"] or any(map(_OF_MODEL.search, overrides)),
    )
    if len(arguments.words) != 1:
        raise ConfigError("name one run's folder, or one trace file")
    where = (Path(arguments.words[0]), arguments["episode"], arguments["step"])
    done = asyncio.run(replay_decision(*where, changes, overrides, file=arguments["config"],
                                       trusted=arguments["trust"]))  # fmt: skip
    traces = done.before, done.after
    before, after = (t.output if t.action is None else str(t.action) for t in traces)
    what = "output" if all(trace.action is None for trace in traces) else "decision"
    made = table(done.before.observation.goal, ["message", "before", "after"],
                 caption="Bold: the message has changed.", left=True)  # fmt: skip
    for row in messages(done):
        style = "bold" if row["before"] != row["after"] else ""
        made.add_row(row["id"], row["before"], row["after"], style=style)
    made.add_section()
    made.add_row(what, before or "none", after or "none")
    output.show(made)
    same = done.before.action == done.after.action and before == after
    calls = f"{done.requests} of {len(done.after.calls)} calls were made again"
    output.show(Text(f"the {what} is {'the same' if same else 'different'}; {calls}"))
    if out is not None:
        with writing(out):
            step = StepRecord(trace=done.after, executed=done.after.action)
            write_jsonl(out, [Episode(environment="", task=done.after.run, seed=done.after.seed,
                                      policy="one decision", steps=(step,))])  # fmt: skip
        output.say(f"wrote {out}")
    return output.done(
        same=same, asked=done.requests, before=before, after=after, messages=messages(done)
    )


_WHAT = get_args(exporting.What)


@flags.command(
    flags.words("RUN WHAT", f"folder of a run, or of a corpus; what to export: {', '.join(_WHAT)}",
                flags.one_of(*_WHAT)),
    flags.option("out", Path, "PATH", "file, or folder (default: standard output)", "-o", panel=""),
    flags.switch("solved", "only episodes that were solved", panel=""),
    flags.FORCE, flags.JSON,
)  # fmt: skip
def export(arguments: flags.Arguments) -> int:
    """Export adapters, episodes or preference pairs of a run, or the samples of a corpus.

    LoRA adapters are written in peft's format, episodes and preference pairs as JSON lines (pairs
    in TRL's format, with the exact prompts and replies), and a corpus in TRL's format.

    Example: [bold]swarm-ui export runs/team pairs[/]
    """
    output, out, given = arguments.output, arguments["out"], arguments["words"] or []
    if len(given) != 2 or given[1] not in _WHAT:
        raise ConfigError(f"expected RUN WHAT, such as runs/team pairs; WHAT: {', '.join(_WHAT)}")
    run, what = Path(given[0]), given[1]
    text = what in ("episodes", "pairs")
    if arguments["solved"] and not text:
        raise ConfigError(f"--solved: chooses episodes or pairs, not {what}; leave it out")
    if out is not None:
        expect_new(out, arguments["force"])
    if not text:
        if out is None:
            raise ConfigError(f"{what}: several files are written; name a folder with --out")
        with writing(out):
            names = (exporting.adapters if what == "adapters" else exporting.corpus)(run, out)
        output.say(f"wrote {', '.join(names)} to {out}")
        return output.done(out=str(out), **{"adapters" if what == "adapters" else "files": names})
    found = exporting.lines(run, what, solved=arguments["solved"])
    if out is not None:
        with writing(out), replacing(out) as file:
            count = sum(bool(file.write(line.encode())) for line in found)
        output.say(f"wrote {out}, {counted(count, 'line')}")
        return output.done(out=str(out), lines=count)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as held:
        held.writelines(found)  # nothing is printed if one cannot be read
        held.seek(0)
        if output.machine:
            return output.done(what=what, text=held.read())
        for line in held:
            output.lines(line)
    return output.done()
