"""Programs run in a process that is forked after torch, transformers and peft were imported.

A fresh interpreter needs 4 CPU-seconds for these imports. The process that forks is started by
the first program and serves all later ones of the test session.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "transformers", "peft"])


def run_warm(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = 500.0,
) -> CompletedProcess[str]:
    """Run ``python *arguments``, like :func:`subprocess.run` with captured output.

    ``arguments`` start with ``-c`` and a text, ``-m`` and a module, or the path of a script.

    Raises:
        TimeoutExpired: the program took longer than ``timeout`` seconds; it was killed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _CONTEXT.Process(
            target=_program, args=([*arguments], str(cwd), dict(env), str(out), str(err))
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired([*arguments], timeout, out.read_bytes(), err.read_bytes())
        assert process.exitcode is not None
        return CompletedProcess(
            [*arguments], process.exitcode, out.read_text("utf-8"), err.read_text("utf-8")
        )


def _program(arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """What the forked process does."""
    for stream, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    kind = arguments[0]
    sys.argv = arguments if kind not in ("-c", "-m") else [kind, *arguments[2:]]
    start = str(Path(kind).parent) if kind not in ("-c", "-m") else ""
    sys.path[:0] = [start, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        if kind == "-c":
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
        elif kind == "-m":
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(kind, run_name="__main__")
    finally:
        atexit._run_exitfuncs()
