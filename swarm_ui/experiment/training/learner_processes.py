"""Training by command in the processes that ``accelerate launch`` started.

The first process is the command that the user sees. The others load the same model and train their
part; see :mod:`swarm_ui.optim.update.distributed.learners`.
"""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.experiment.config import Config, ModelSection
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.training.roles import asks_model
from swarm_ui.nodes.models.transformers.placement import SPREAD

if TYPE_CHECKING:
    from swarm_ui.optim.update.distributed.learners import Learners
    from swarm_ui.optim.update.distributed.processes import Processes


class _Described(msgspec.Struct, frozen=True):
    """The data that another process needs to load the model."""

    section: ModelSection
    learned: tuple[str, ...]
    resume: str
    """The command that resumes the run."""
    machine: str
    """Name of the first process's machine."""
    process: int
    """Process id on that machine."""


def join_processes() -> Processes | None:
    """Join the group of processes that the launcher started; ``None`` if this is the only process.

    Raises:
        MissingExtra: there are several, and accelerate is not installed.
    """
    from swarm_ui.optim.update.distributed.processes import Processes, launched

    return Processes.join() if launched() > 1 else None


def placed(section: ModelSection, processes: Processes | None) -> ModelSection:
    """The model of one process: each has a device of its own.

    A model that is divided by FSDP is loaded into the main memory, and each process moves its part
    to its device.

    Raises:
        ConfigError: the setting names one device, or distributes the layers over all of them.
    """
    from swarm_ui.optim.update.distributed.sharded_base import sharding_wanted

    if sharding_wanted():
        return replace(section, device="cpu")
    if processes is None or section.device == "cpu":
        return section
    if ":" in section.device or section.device in SPREAD:
        raise ConfigError(
            f"[model] device: with {processes.size} processes, expected cpu, or a kind of device "
            f"such as cuda (each process uses one device of this kind); got '{section.device}'"
        )
    return replace(section, device=f"{section.device}:{processes.local_rank}")


def check_processes(config: Config, processes: Processes) -> None:
    """Raise ``ConfigError`` if the settings do not suit a training in several processes."""
    from swarm_ui.optim.update.distributed.sharded_base import sharding_wanted

    placed(config.model, processes)
    if not sharding_wanted():
        return
    if config.model.quantize:
        raise ConfigError(
            "[model] quantize: FSDP cannot divide a quantised model; leave quantize out"
        )
    if os.environ.get("FSDP_CPU_RAM_EFFICIENT_LOADING", "false").lower() == "true":
        raise ConfigError(
            "FSDP: expected fsdp_cpu_ram_efficient_loading: false in the configuration of "
            "accelerate; every process reads the files of the model"
        )
    if not config.model.actor:
        raise ConfigError(
            "[model] actor: with FSDP no process holds the whole model, so it cannot act; expected "
            "a server that acts with the learner's adapters: --actor URL"
        )
    if asks_model(config) and not (config.critic.model or config.critic.url):
        raise ConfigError(
            "[critic] model: with FSDP the agents' own model cannot answer the critic, the "
            "adversary or the teacher; name another one with --critic-model or --critic-url"
        )


def begin_loading(
    learners: Learners, section: ModelSection, learned: Sequence[str], resume: str
) -> None:
    """Let the other processes load the model while this one loads its own.

    Args:
        learners: the other processes.
        section: the settings of the model, as the user gave them.
        learned: the adapters that are trained.
        resume: the command that resumes the run, for their errors.
    """
    told = _Described(section, tuple(learned), resume, platform.node(), os.getpid())
    learners.begin(msgspec.json.encode(told))


class EndedByLauncher(KeyboardInterrupt):
    """The launcher ended this process, as it does when another one has failed."""


def follow_training(processes: Processes) -> bool:
    """Wait for updates and take part in them, in every process except the first.

    Returns:
        ``False`` if the training ended early; another process then reports why.

    Raises:
        LearningError: the first process was killed; only one process raises this.
    """
    from swarm_ui.optim.update.distributed.learners import follow
    from swarm_ui.optim.update.distributed.processes import LostProcess

    told: _Described | None = None
    interrupted = False

    def load(description: bytes) -> Any:
        nonlocal told
        told = msgspec.json.decode(description, type=_Described)
        return load_in_process(placed(told.section, processes), told.learned)

    def ended(number: int, frame: object) -> None:
        if not processes.lost:
            raise EndedByLauncher

    def wait(number: int, frame: object) -> None:
        nonlocal interrupted
        interrupted = True

    # Ctrl-C reaches every process: the first one saves the run, and tells the others to end.
    signal.signal(signal.SIGINT, wait)
    signal.signal(signal.SIGTERM, ended)
    try:
        follow(processes, load)
    except (LostProcess, EndedByLauncher) as error:
        if interrupted or told is None or processes.rank != 1 or _runs(told):
            return False  # the first process reports it
        raise LearningError(
            f"process 1 of {processes.size}, which plays the episodes and saves the run, has "
            f"ended. The finished iterations are saved; continue with: {told.resume}"
        ) from error
    processes.leave()
    return True


def _runs(told: _Described) -> bool:
    """Whether the first process is known to run; false if it is on another machine."""
    import psutil  # type: ignore[import-untyped]  # comes with accelerate

    if told.machine != platform.node():
        return False
    try:
        return bool(psutil.Process(told.process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def leading(processes: Processes | None) -> Iterator[Learners | None]:
    """Give the block access to the other processes, and end them when the block ends.

    ``processes`` is ``None`` if there are no others; then the block gets ``None``.

    SIGTERM, which the launcher sends if another process ended, raises :class:`EndedByLauncher`.
    Ctrl-C counts once: the launcher sends it again to every process.
    """
    if processes is None:
        yield None
        return
    from swarm_ui.optim.update.distributed.learners import Learners

    def ended(number: int, frame: object) -> None:
        if not processes.lost:  # else the error about that is on its way
            _ignore_signals()
            raise EndedByLauncher

    def interrupted(number: int, frame: object) -> None:
        _ignore_signals()
        raise KeyboardInterrupt

    learners = Learners(processes)
    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield learners
    finally:
        _ignore_signals()  # the process is about to end
        learners.close()
        processes.leave()


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
