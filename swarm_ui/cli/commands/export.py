"""``swarm-ui export``: exports parts of a run, or a corpus, to formats of other programs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import expect_new, writing
from swarm_ui.cli.output import Output
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import exporting
from swarm_ui.files import replacing
from swarm_ui.viz.svg import counted

What = Literal["adapters", "episodes", "pairs", "trl"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, or of a corpus")],
    what: Annotated[What, typer.Argument(help="what to export")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PATH",
                   help="file (for adapters and trl: folder); default: standard output")] = None,
    solved: Annotated[
        bool, flags.declare("--solved", help="only episodes that were solved", panel="")
    ] = False,
    force: flags.Force = False,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Export adapters, episodes or preference pairs of a run, or the samples of a corpus.

    LoRA adapters are written in peft's format, episodes and preference pairs as JSON lines (pairs
    in TRL's format, with the exact prompts and replies), and a corpus in TRL's format.

    Example: [bold]swarm-ui export runs/team pairs[/]
    """
    output, text = Output(machine=json), what in ("episodes", "pairs")
    if solved and not text:
        raise ConfigError(f"--solved: chooses episodes or pairs, not {what}; leave it out")
    if out is not None:
        expect_new(out, force)
    if not text:
        if out is None:
            raise ConfigError(f"{what}: several files are written; name a folder with --out")
        write = exporting.adapters if what == "adapters" else exporting.corpus
        names = write(run, out)
        output.say(f"wrote {', '.join(names)} to {out}")
        return output.done(out=str(out), **{"adapters" if what == "adapters" else "files": names})
    found = exporting.lines(run, what, solved=solved)
    if out is not None:
        count = 0
        with writing(out), replacing(out) as file:
            for line in found:
                file.write(line.encode())
                count += 1
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
