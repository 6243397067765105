"""Training by command in the processes that ``accelerate launch`` started.

The first process is the command that the user sees. The others load the same model and train their
part; see :mod:`swarm_ui.optim.update.distributed.learners`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import load_in_process
from swarm_ui.nodes.models.transformers.placement import SPREAD

if TYPE_CHECKING:
    from swarm_ui.optim.update.distributed.learners import Learners
    from swarm_ui.optim.update.distributed.processes import Processes


class _Described(msgspec.Struct, frozen=True):
    """What another process needs to load the model."""

    section: ModelSection
    learned: tuple[str, ...]
    resume: str
    """The command that goes on with the run."""


def join_processes() -> Processes | None:
    """The processes of the launcher, joined by this one; ``None``: there is only this one.

    Raises:
        MissingExtra: there are several, and accelerate is not installed.
    """
    from swarm_ui.optim.update.distributed.processes import Processes, launched

    return Processes.join() if launched() > 1 else None


def placed(section: ModelSection, processes: Processes | None) -> ModelSection:
    """The model of one process: each has a device of its own.

    Raises:
        ConfigError: the setting names one device, or distributes the layers over all of them.
    """
    if processes is None or section.device == "cpu":
        return section
    if ":" in section.device or section.device in SPREAD:
        raise ConfigError(
            f"[model] device: with {processes.size} processes expected cpu or a kind of device, "
            f"such as cuda, of which each process uses one; got '{section.device}'"
        )
    return replace(section, device=f"{section.device}:{processes.local_rank}")


def begin_loading(
    learners: Learners, section: ModelSection, learned: Sequence[str], resume: str
) -> None:
    """Let the other processes load the model while this one loads its own.

    Args:
        learners: the other processes.
        section: the choice, as the user made it.
        learned: the adapters that are trained.
        resume: the command that goes on with the run, for their errors.
    """
    learners.begin(msgspec.json.encode(_Described(section, tuple(learned), resume)))


def follow_training(processes: Processes) -> None:
    """What every process but the first does: wait for updates, and take part in them.

    Raises:
        LearningError: another process ended; says how to go on.
    """
    from swarm_ui.optim.update.distributed.learners import follow
    from swarm_ui.optim.update.distributed.processes import LostProcess

    resume = ""

    def load(description: bytes) -> Any:
        nonlocal resume
        told = msgspec.json.decode(description, type=_Described)
        resume = told.resume
        return load_in_process(placed(told.section, processes), told.learned)

    # Ctrl-C reaches every process: the first one saves the run, and tells the others to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        follow(processes, load)
    except LostProcess as error:
        kept = f". The finished iterations are saved; go on with: {resume}" if resume else ""
        raise LearningError(f"{error}{kept}") from error


class EndedByLauncher(KeyboardInterrupt):
    """The launcher ended this process, as it does when another one has failed."""


@contextmanager
def leading(processes: Processes | None) -> Iterator[Learners | None]:
    """The other processes while the block runs; they end with it. ``None``: there are none.

    SIGTERM, which the launcher sends if another process ended, raises :class:`EndedByLauncher`.
    """
    if processes is None:
        yield None
        return
    from swarm_ui.optim.update.distributed.learners import Learners

    def ended(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes once for each process
        raise EndedByLauncher

    learners, before = Learners(processes), signal.signal(signal.SIGTERM, ended)
    try:
        yield learners
    finally:
        learners.close()
        signal.signal(signal.SIGTERM, before)
