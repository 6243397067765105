"""Programs run in this process, which has imported what they need.

A new process needs a second for the library alone, and four more if it imports torch.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import TextIO
from unittest import mock


def run_here(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> CompletedProcess[str]:
    """Run ``python *arguments`` in this process, like :func:`subprocess.run` with captured output.

    ``arguments`` start with ``-c`` and a text, or the path of a script. Warnings are shown as a
    new interpreter shows them.

    Raises:
        Exception: any that the program does not handle.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with _as_program(arguments, cwd, env, out, err):
        try:
            if arguments[0] == "-c":
                main = sys.modules["__main__"]
                exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
            else:
                runpy.run_path(arguments[0], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    said = (stream.buffer.getvalue().decode("utf-8") for stream in (out, err))
    return CompletedProcess([*arguments], code, *said)


@contextlib.contextmanager
def _as_program(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str], out: TextIO, err: TextIO
) -> Iterator[None]:
    """Put the words, folder, environment and streams of a program in the place of ours."""
    words = list(arguments) if arguments[0] != "-c" else ["-c", *arguments[2:]]
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch.object(sys, "argv", words),
        mock.patch.object(sys, "path", [*sys.path]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for hidden in (DeprecationWarning, PendingDeprecationWarning, ImportWarning):
            warnings.simplefilter("ignore", hidden)
        warnings.simplefilter("ignore", ResourceWarning)
        ours = sys.modules["__main__"]  # only this one: what is imported stays imported
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = ours
