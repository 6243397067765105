"""The program with all its commands, and the exit code of each error."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from swarm_ui import __version__
from swarm_ui.cli import act, doctor, exits, look, setup, stage1, train
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, prepare_streams
from swarm_ui.errors import SwarmError
from swarm_ui.experiment.learner_processes import EndedByLauncher
from swarm_ui.experiment.stored import DISK_ERRORS
from swarm_ui.experiment.terminal import discard_output, printable

app = typer.Typer(
    name="swarm-ui",
    help="Teams of language-model agents that operate phones and web pages.",
    epilog=f"Exit codes: {'. '.join(f'{code} {text}' for code, text in exits.MEANINGS.items())}.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PANELS = {
    "Act": {"eval": act.evaluate, "compare": act.compare, "play": act.play},
    "Learn": {"train": train.train, "synthesize": stage1.synthesize, "finetune": stage1.finetune,
              "critic": stage1.critic},
    "Look": {"view": look.view, "runs": look.runs, "replay": look.replay, "export": look.export},
    "Set up": {"doctor": doctor.doctor, "config": setup.config},
}  # fmt: skip
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(setup.models, name="models", rich_help_panel=_panel)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", metavar="", help="Show the version and exit."),
) -> None:
    if version:
        typer.echo(f"swarm-ui {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code, see :mod:`swarm_ui.cli.exits`."""
    prepare_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    out = Output(machine="--json" in words)

    try:
        code = app(args=words, prog_name="swarm-ui", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except TyperException as error:
        # Typer's usage errors are not public: their attributes may be missing.
        message = str(getattr(error, "message", "") or error)
        where = getattr(getattr(error, "ctx", None), "command_path", "swarm-ui")
        formatted = getattr(error, "format_message", lambda: message)()
        formatted = formatted.replace("Value error, ", "").rstrip(".")
        out.error(f"{formatted} (see: {where} --help)")
        return out.done(exits.WRONG, error="UsageError", message=formatted)
    except SwarmError as error:
        out.error(str(error))
        return out.done(exits.code_of(error), error=type(error).__name__, message=str(error))
    except Stopped as stop:
        code = exits.INTERRUPTED
        if isinstance(stop.cause, SwarmError | EndedByLauncher):
            code = exits.code_of(stop.cause)
            out.error(str(stop.cause))
        out.log.print(f"stopped; {stop}", soft_wrap=True)
        return out.done(
            code, error="Stopped", message=str(stop), run=str(stop.run), resume=stop.resume
        )
    except (KeyboardInterrupt, Abort):
        out.log.print("stopped")
        return out.done(exits.INTERRUPTED, error="KeyboardInterrupt", message="stopped")
    except BrokenPipeError:
        discard_output(sys.stdout)
        return exits.OK
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            if error.filename is None:  # it may be standard output that cannot be written
                discard_output(sys.stdout)
            message = f"a file cannot be read or written: {error}"
            out.error(f"{message}; make room, or change its permissions, and repeat the command")
            return out.done(exits.WRONG, error=type(error).__name__, message=message)
        sys.stderr.write(printable(traceback.format_exc()))
        return out.done(exits.INTERNAL, error=type(error).__name__, message=str(error))
