"""Training by command in the processes that ``accelerate launch`` started.

The first process is the command that the user sees. The others load the same model and compute
their share of every batch; see :mod:`swarm_ui.optim.distributed`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from swarm_ui.errors import ConfigError, FailureKind
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.model_settings import Agent, AnyModel, Language
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.teams import agent_names

if TYPE_CHECKING:
    from swarm_ui.optim.distributed import Processes


def join_processes() -> Processes | None:
    """Join the group of processes that the launcher started; ``None`` if this is the only one."""
    from swarm_ui.optim.distributed import Processes, launched

    return Processes.join() if launched() > 1 else None


def placed(section: AnyModel, processes: Processes | None) -> AnyModel:
    """The model of one process: each has a device of its own. Raises ``ConfigError`` if the setting
    names one device, or distributes the layers over all of them."""
    if processes is None or not isinstance(section, Language) or section.device == "cpu":
        return section
    if ":" in section.device or section.device == "auto":
        raise ConfigError(f"model.device: with {processes.size} processes, expected cpu or a kind "
                          f"such as cuda, got '{section.device}'")  # fmt: skip
    return section.model_copy(update={"device": f"{section.device}:{processes.local_rank}"})


def follow_training(processes: Processes) -> bool:
    """Load the model and take part in the updates, in every process except the first; ``False`` if
    the training ended early, which another process reports."""
    from swarm_ui.optim.distributed import LostProcess
    from swarm_ui.optim.update import follow

    # Ctrl-C reaches every process: the first one saves the run, and tells the others to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if told := processes.send(None):  # the settings of the first one
            config = Config.model_validate_json(told)
            section = placed(config.model, processes)
            assert isinstance(section, Agent | Language)
            names, rank = agent_names(config.team.filled(learning=True).agents), config.train.rank
            model = load_in_process(section, names)
            for name in names:
                if name not in model.adapters:
                    model.add_adapter(name, rank, 2 * rank)
            follow(model, processes)
    except LostProcess:
        return False
    processes.leave()
    return True


class EndedByLauncher(KeyboardInterrupt):
    """The launcher ended this process, as it does when another one has failed."""

    kind: FailureKind = "learning"

    def __str__(self) -> str:
        return "the launcher ended this process, as it does when another process has ended"


@contextmanager
def leading(processes: Processes | None) -> Iterator[Processes | None]:
    """End the other processes when the block ends; ``None``: there are no others.

    SIGTERM, which the launcher sends if another process ended, raises :class:`EndedByLauncher`.
    Ctrl-C counts once: the launcher sends it again to every process.
    """
    if processes is None:
        yield None
        return

    def stopped(number: int, frame: object) -> None:
        if number == signal.SIGTERM and processes.lost:
            return  # the error about that is on its way
        _ignore_signals()
        raise EndedByLauncher if number == signal.SIGTERM else KeyboardInterrupt

    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGINT, stopped)
    try:
        yield processes
    finally:
        _ignore_signals()  # the process is about to end
        processes.end()
        processes.leave()


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
