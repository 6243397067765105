"""The state of a run: whether a process is working on it, and how it ended."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, get_args

from swarm_ui.errors import BudgetExceeded, ConfigError, brief
from swarm_ui.files import being_written, only_writer
from swarm_ui.storage.run_directory import RunDirectory

RunState = Literal[
    "running", "finished", "failed", "interrupted", "killed", "damaged", "unknown"
]  # fmt: skip
"""``failed``: an error ended it. ``interrupted``: by Ctrl-C, or a budget was used up. ``killed``:
no end was recorded; earlier versions also recorded none for interrupted and failed runs.
``damaged``: its files cannot be read. ``unknown``: made from Python, which need not record an
end."""
STATES: tuple[RunState, ...] = get_args(RunState)
DISK_ERRORS = frozenset({errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC,
                         errno.EPERM, errno.EROFS})  # fmt: skip
"""Numbers of the errors of a full, read-only or broken disk."""
_FINISHED = ("played", "trained", "done")
"""The stages after which nothing is left to do."""


@contextmanager
def running(run: RunDirectory) -> Iterator[None]:
    """Lock a run while the block works on it, and record how the block ended if it failed.

    Nothing is recorded in a folder that is otherwise unused.

    Raises:
        ConfigError: another process is working on it, or the block could not write its files.
    """
    with only_writer(run.path, "run"):
        if (run.path / "status.json").exists():
            run.set_status({"stage": "resumed"})  # how it ended before is over
        try:
            yield
        except (KeyboardInterrupt, BudgetExceeded) as error:
            _record(run, "interrupted", error)
            raise
        except Exception as error:
            begun = not run.unused
            if begun:
                _record(run, "failed", error)
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                raise ConfigError(
                    f"the run '{run.path}' cannot be written: {error}; make room, or change its "
                    f"permissions, and {'continue the run' if begun else 'repeat the command'}"
                ) from error
            raise


def _record(run: RunDirectory, stage: str, error: BaseException) -> None:
    with suppress(OSError):  # a full disk may be why it failed: that error is raised
        run.set_status({"stage": stage, "error": " ".join(brief(error).split())})


def state_of(run: RunDirectory) -> tuple[RunState, str]:
    """The state of a run, and the error that ended it or a description of damage; changes nothing.

    The files of a run that is being written are not checked for damage.
    """
    if being_written(run.path):
        return "running", ""
    try:
        run.document()
        status = run.status()
    except ConfigError as error:
        return "damaged", str(error)
    stage, reason = status.get("stage"), str(status.get("error") or "")
    if stage in _FINISHED:
        return "finished", ""
    if stage == "failed":
        return "failed", reason
    return ("interrupted" if stage == "interrupted" else "killed"), reason
