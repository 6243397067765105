"""Helpers of scripts: one-line errors with an exit code, and folders of resumable studies."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment.terminal import discard_output, printable
from swarm_ui.files import write_atomic


def script(main: Callable[[], int]) -> Callable[[], int]:
    """``main`` with errors reported in one line; the exit code is 2, or 130 after Ctrl-C."""

    @functools.wraps(main)
    def run() -> int:
        try:
            code = main()
            sys.stdout.flush()
            return code
        except SwarmError as error:
            print(printable(f"error: {error}"), file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("stopped; the same command continues", file=sys.stderr)
            return 130
        except BrokenPipeError:
            discard_output(sys.stdout)
            return 0

    return run


def check_study(path: Path, options: Any) -> None:
    """Write the options of a study, or check that they equal the options it was started with.

    Args:
        path: the JSON file in the folder of the study.
        options: anything that ``msgspec`` encodes as an object.

    Raises:
        ConfigError: the study was started with other options.
    """
    if not path.exists():
        write_atomic(path, msgspec.json.encode(options) + b"\n")
        return
    other = other_options(msgspec.json.decode(path.read_bytes(), type=dict[str, object]), options)
    if other:
        raise ConfigError(
            f"'{path.parent}' was started with other options ({other}). "
            "Give the same options, or another --out"
        )


def other_options(found: Mapping[str, object], options: Any) -> str:
    """The options that differ from stored ones, in words; empty: none does.

    Args:
        found: the stored options. One that is not there has the default of ``options``: it is
            newer than the file.
        options: anything that ``msgspec`` encodes as an object.
    """
    now = _as_json(options)
    if isinstance(options, msgspec.Struct):
        fields = msgspec.structs.fields(options)
        new = {f.encode_name: f.default for f in fields if f.default is not msgspec.NODEFAULT}
        found = {**_as_json(new), **found}
    other = sorted(key for key in now if found.get(key) != now[key])
    return ", ".join(f"{key}={found.get(key)}, now {now[key]}" for key in other)


def _as_json(options: Any) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(options), type=dict[str, object])
