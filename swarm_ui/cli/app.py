"""The program with all its commands, and the exit code of each error."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from swarm_ui import __version__
from swarm_ui.cli import exits
from swarm_ui.cli.commands import (
    compare,
    config,
    critic,
    doctor,
    evaluate,
    export,
    finetune,
    models,
    play,
    replay,
    runs,
    synthesize,
    train,
    view,
)
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, prepare_streams
from swarm_ui.errors import SwarmError
from swarm_ui.experiment.stored import DISK_ERRORS
from swarm_ui.experiment.terminal import discard_output, printable

_EPILOG = (
    "Exit codes: 0 done; 1 negative result (not solved, below --fail-under, something missing); "
    "2 wrong usage, configuration or file; 3 the environment broke; 4 the model could not answer; "
    "5 training cannot continue; 70 a bug; 130 interrupted."
)

app = typer.Typer(
    name="swarm-ui",
    help="Teams of language-model agents that operate phones and web pages.",
    epilog=_EPILOG,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PLAY, _LEARN, _LOOK, _SET_UP = "Act", "Learn", "Look", "Set up"
for _name, _command, _panel in (
    ("eval", evaluate.evaluate, _PLAY),
    ("compare", compare.compare, _PLAY),
    ("play", play.play, _PLAY),
    ("train", train.train, _LEARN),
    ("synthesize", synthesize.synthesize, _LEARN),
    ("finetune", finetune.finetune, _LEARN),
    ("critic", critic.critic, _LEARN),
    ("view", view.view, _LOOK),
    ("runs", runs.runs, _LOOK),
    ("replay", replay.replay, _LOOK),
    ("export", export.export, _LOOK),
    ("doctor", doctor.doctor, _SET_UP),
    ("config", config.config, _SET_UP),
):
    app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(models.models, name="models", rich_help_panel=_SET_UP)


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
        return _record(out, exits.WRONG, "UsageError", formatted)
    except SwarmError as error:
        out.error(str(error))
        return _record(out, exits.code_of(error), type(error).__name__, str(error))
    except Stopped as stop:
        code = exits.INTERRUPTED
        if isinstance(stop.cause, SwarmError):
            code = exits.code_of(stop.cause)
            out.error(str(stop.cause))
        out.log.print(f"stopped; {stop}", soft_wrap=True)
        return _record(out, code, "Stopped", str(stop), run=str(stop.run), resume=stop.resume)
    except (KeyboardInterrupt, Abort):
        out.log.print("stopped")
        return _record(out, exits.INTERRUPTED, "KeyboardInterrupt", "stopped")
    except BrokenPipeError:
        discard_output(sys.stdout)
        return exits.OK
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            if error.filename is None:  # it may be standard output that cannot be written
                discard_output(sys.stdout)
            message = f"a file cannot be read or written: {error}"
            out.error(f"{message}; make room, or change its permissions, and repeat the command")
            return _record(out, exits.WRONG, type(error).__name__, message)
        sys.stderr.write(printable(traceback.format_exc()))
        return _record(out, exits.INTERNAL, type(error).__name__, str(error))


def _record(out: Output, code: int, kind: str, message: str, **more: object) -> int:
    out.record({"ok": False, "exit": code, "error": kind, "message": message, **more})
    return code
