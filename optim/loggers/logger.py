"""The protocol of loggers, and a group of loggers that outlives the failure of any of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, runtime_checkable

from swarm_ui.errors import brief
from swarm_ui.storage.run_directory import without_secrets

Status = Literal["finished", "failed", "interrupted"]


@runtime_checkable
class Logger(Protocol):
    """Receives the settings and the metrics of one run.

    The calls come in this order: :meth:`start`, :meth:`log` for each step, :meth:`finish`. A run
    that is resumed begins with :meth:`start` again and continues with the next step. An exception
    of a method does not end the run: see :class:`LoggerGroup`.
    """

    def start(self, config: Mapping[str, Any]) -> None:
        """Begin or continue the record of a run.

        Args:
            config: the settings by dotted names (``"train.update.method"``); texts, numbers,
                booleans or ``None``. Secrets and passwords of addresses are left out.
        """
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record metrics.

        Args:
            metrics: finite numbers by name, such as ``"rollout/success"``. What was not measured
                is absent.
            step: the iteration, counted from 0; it increases from call to call.
        """
        ...

    def finish(self, status: Status) -> None:
        """End the record. Called once, also after an error or an interruption."""
        ...


class LoggerGroup:
    """Passes everything to several loggers.

    An exception of a logger is reported once. The logger is then left out, and the others continue.
    """

    def __init__(self, loggers: Sequence[Logger], warn: Callable[[str], None]) -> None:
        """
        Args:
            loggers: receive the metrics, in this order.
            warn: called with one line when a logger fails.
        """
        self._loggers, self._warn = list(loggers), warn
        self._started: list[Logger] = []

    def start(self, config: Mapping[str, Any]) -> None:
        """Pass the settings on, without secrets and with dotted names."""
        shown = flat(without_secrets(config))

        def begin(logger: Logger) -> None:
            logger.start(shown)
            self._started.append(logger)

        self._each("start", begin)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Pass metrics on; numbers that are not finite are left out."""
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        self._each("log", lambda logger: logger.log(finite, step))

    def finish(self, status: Status) -> None:
        """End all records that were begun."""
        self._loggers = [logger for logger in self._loggers if logger in self._started]
        self._each("finish", lambda logger: logger.finish(status))

    def _each(self, method: str, call: Callable[[Logger], None]) -> None:
        for logger in tuple(self._loggers):
            try:
                call(logger)
            except Exception as error:
                self._loggers.remove(logger)
                text = " ".join(brief(error).split())
                self._warn(
                    f"the logger {type(logger).__name__} failed in {method}: "
                    f"{type(error).__name__}: {text}; the run continues without it"
                )


@contextmanager
def logging_to(
    loggers: Sequence[Logger], config: Mapping[str, Any], warn: Callable[[str], None]
) -> Iterator[LoggerGroup]:
    """Start the loggers, and finish them with the status of the block: finished, failed or
    interrupted.

    Args:
        loggers: any number of loggers, or none.
        config: settings, which may be nested.
        warn: see :class:`LoggerGroup`.
    """
    group = LoggerGroup(loggers, warn)
    status: Status = "failed"
    try:
        group.start(config)
        yield group
        status = "finished"
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = "interrupted"
        raise
    finally:
        group.finish(status)


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names; lists become texts such as ``"2, 3"``."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            found[f"{prefix}{name}"] = ", ".join(map(str, value))
        else:
            plain = value is None or isinstance(value, bool | int | float | str)
            found[f"{prefix}{name}"] = value if plain else str(value)
    return found
