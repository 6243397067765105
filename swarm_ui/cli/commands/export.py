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
from swarm_ui.files import write_atomic
from swarm_ui.trace.jsonl import write_jsonl

What = Literal["adapters", "episodes", "pairs", "edges", "mermaid",
               "trl", "llama-factory", "counts"]  # fmt: skip


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
    A corpus is written for TRL or LLaMA-Factory, or its
    samples and dropped items are counted.

    Example: [bold]swarm-ui export runs/demo mermaid[/]
    """
    output = Output(machine=json)
    if solved and what not in ("episodes", "pairs"):
        raise ConfigError(f"--solved: chooses episodes or pairs, not {what}; leave it out")
    if prompt_format is not None and what != "pairs":
        raise ConfigError(f"--prompt-format: rewrites pairs, not {what}; leave it out")
    if out is not None:
        flags.expect_new(out, force)
    if what == "adapters":
        if out is None:
            raise ConfigError("adapters are exported as several files: name a folder with --out")
        names = exporting.adapters(run, out)
        output.say(f"wrote {', '.join(names)} to {out}")
        return output.done(out=str(out), adapters=names)
    if what in exporting.CORPUS_FORMATS:
        if out is None:
            raise ConfigError("samples are exported as several files: name a folder with --out")
        files = exporting.corpus(run, what, out)
        output.say(f"wrote {', '.join(path.name for path in files)} to {out}")
        return output.done(out=str(out), files=[str(path) for path in files])
    if what == "episodes":
        return _export_episodes(run, solved, out, output)
    if what == "counts":
        text = exporting.counts(run)
    else:
        text = exporting.text(run, what, solved, prompt_format)
    if out is None:
        output.lines(text)
        return output.done(what=what, text=text)
    with writing(out):
        write_atomic(out, text)
    return _told(out, text.count("\n"), output)


def _export_episodes(run: Path, solved: bool, out: Path | None, output: Output) -> int:
    """Export episodes one at a time: a run may have more of them than fit in memory."""
    found = exporting.episodes(run, solved)
    if out is not None:
        with writing(out):
            write_jsonl(out, found)
        with out.open("rb") as file:
            return _told(out, sum(1 for _ in file), output)
    with tempfile.TemporaryDirectory() as folder:  # nothing is printed if one cannot be read
        path = Path(folder) / "episodes.jsonl"
        write_jsonl(path, found)
        if output.machine:
            return output.done(what="episodes", text=path.read_text(encoding="utf-8"))
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                output.lines(line)
    return output.done()


def _told(out: Path, lines: int, output: Output) -> int:
    output.say(f"wrote {out}, {lines} lines")
    return output.done(out=str(out), lines=lines)
