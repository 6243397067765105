"""``swarm-ui export``: exports parts of a run, or a corpus, to formats of other programs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import writing
from swarm_ui.cli.output import Output
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import exporting
from swarm_ui.files import replacing
from swarm_ui.viz.svg import counted

What = Literal["adapters", "episodes", "pairs", "edges", "mermaid", "trl", "counts"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, or of a corpus")],
    what: Annotated[What, typer.Argument(help="what to export")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PATH",
                   help="file (for adapters: folder); default: standard output")] = None,
    solved: Annotated[
        bool, flags.declare("--solved", help="only episodes that were solved", panel="")
    ] = False,
    prompt_format: Annotated[str | None, typer.Option("--prompt-format", metavar="NAME",
        help="rewrite the prompts and replies of pairs in this format (json, compact), to train "
             "another model; default: exactly as recorded")] = None,
    force: flags.Force = False,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Export adapters, episodes, pairs, edges or a drawing of a run, or the samples of a corpus.

    LoRA adapters are written in peft's format, episodes and preference pairs as JSON lines (pairs
    in TRL's format, with the exact prompts and replies), edges as JSON, and the team as Mermaid.
    A corpus is written in TRL's format, or its samples and dropped items are counted.

    Example: [bold]swarm-ui export runs/team mermaid[/]
    """
    output = Output(machine=json)
    if solved and what not in ("episodes", "pairs"):
        raise ConfigError(f"--solved: chooses episodes or pairs, not {what}; leave it out")
    if prompt_format is not None and what != "pairs":
        raise ConfigError(f"--prompt-format: rewrites pairs, not {what}; leave it out")
    if out is not None:
        flags.expect_new(out, force)
    if what in ("adapters", "trl"):
        if out is None:
            raise ConfigError(f"{what} are exported as several files: name a folder with --out")
        if what == "adapters":
            names = exporting.adapters(run, out)
            output.say(f"wrote {', '.join(names)} to {out}")
            return output.done(out=str(out), adapters=names)
        files = exporting.corpus(run, out)
        output.say(f"wrote {', '.join(path.name for path in files)} to {out}")
        return output.done(out=str(out), files=[str(path) for path in files])
    found = exporting.lines(run, what, solved=solved, prompt_format=prompt_format)
    if out is not None:
        count = 0
        with writing(out), replacing(out) as file:
            for line in found:
                file.write(line.encode())
                count += line.count("\n")
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
