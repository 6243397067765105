"""Where a run's numbers go: ``tensorboard``, ``wandb``, ``mlflow``, a plug-in, or code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from swarm_ui.errors import MissingExtra, brief
from swarm_ui.experiment.plugins import load, make
from swarm_ui.report.results import Results
from swarm_ui.storage.run_directory import without_secrets

Numbers = Mapping[str, float]
"""Numbers by name; ``iteration`` is one of them."""
Log = Callable[[Numbers], object]
"""Receives numbers, as the attribute ``log`` of a trainer. A method ``close``, if it has one, is
called at the end of the run."""
Settings = Mapping[str, Any]


class _TensorBoard:
    def __init__(self, folder: Path, settings: Settings) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))
        self.close = self._writer.close

    def __call__(self, numbers: Numbers) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, _step(numbers))
        self._writer.flush()


class _WandB:
    def __init__(self, folder: Path, settings: Settings) -> None:
        import wandb

        quiet = wandb.Settings(
            console="off", save_code=False, disable_git=True, disable_job_creation=True,
            x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True,
        )  # fmt: skip
        project, name = os.environ.get("WANDB_PROJECT") or "swarm-ui", folder.resolve().name
        self._run = wandb.init(project=project, name=name, dir=str(folder), resume="auto",
                               config=dict(settings), settings=quiet)  # fmt: skip
        self.close = self._run.finish

    def __call__(self, numbers: Numbers) -> None:
        self._run.log(dict(numbers), step=_step(numbers))


class _MLflow:
    def __init__(self, folder: Path, settings: Settings) -> None:
        import mlflow

        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            mlflow.set_experiment("swarm-ui")
        mlflow.start_run(run_name=folder.resolve().name)
        mlflow.log_params({name: str(value)[:500] for name, value in settings.items()})
        self.close, self._log = mlflow.end_run, mlflow.log_metrics

    def __call__(self, numbers: Numbers) -> None:
        self._log(dict(numbers), step=_step(numbers))


LOGGERS: dict[str, Callable[[Path, Settings], Log]] = {
    "tensorboard": _TensorBoard, "wandb": _WandB, "mlflow": _MLflow,
}  # fmt: skip
"""Those of this package by name, which is also that of the Python package and of the extra."""


def _step(numbers: Numbers) -> int:
    return int(numbers.get("iteration", 0))


@contextmanager
def opened_log(
    names: Sequence[str], folder: Path, settings: Settings, warn: Callable[[str], None]
) -> Iterator[Log]:
    """One function that passes numbers on to all loggers of a run.

    An exception of a logger is reported once by ``warn``; the logger is then left out, and the run
    continues. ``settings`` may be nested and hold secrets, which no logger gets."""
    shown, failed = dict(_flat(without_secrets(settings))), set[str]()

    def attempt(name: str, call: Callable[..., Any], *given: object) -> Any:
        try:
            return call(*given)
        except Exception as error:
            if name not in failed:
                text = " ".join(brief(error).split())
                warn(f"the logger {name} failed: {type(error).__name__}: {text}; the run continues "
                     "without it")  # fmt: skip
            failed.add(name)

    def opened(name: str) -> Any:
        given = folder, shown
        return LOGGERS[name](*given) if name in LOGGERS else make("loggers", name, *given)

    made = {name: attempt(name, opened, name) for name in names}

    def log(numbers: Numbers) -> None:
        for name, each in made.items():
            if name not in failed:
                attempt(name, each, numbers)

    try:
        yield log
    finally:
        for name, each in made.items():
            attempt(name, getattr(each, "close", lambda: None))


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings by dotted names; lists become texts such as ``"2, 3"``."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            listed = isinstance(value, list | tuple)
            yield f"{prefix}{name}", ", ".join(map(str, value)) if listed else value


def check_loggers(names: Sequence[str]) -> None:
    """Raise ``MissingExtra`` or ``ConfigError`` if a logger cannot be imported."""
    for name in names:
        if name not in LOGGERS:
            load("loggers", name)
        elif find_spec(name) is None:
            raise MissingExtra(name, f"the logger '{name}'", name)


def result_scalars(results: Results) -> Numbers:
    """The results of an evaluation by name: ``success/SPLIT``, with its interval, and costs."""
    found: dict[str, float] = {}
    for arm in results.arms:
        name = arm.file.replace("/", "-") or "episodes"
        if (interval := arm.success) is not None:
            ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
            found |= {f"success/{name}{end}": value for end, value in ends.items()}
        work = arm.work
        found |= {f"episodes/{name}": arm.counted, f"masked/{name}": arm.masked,
                  f"calls_per_decision/{name}": work.calls_per_decision,
                  f"tokens/{name}": work.tokens, f"seconds/{name}": work.seconds}  # fmt: skip
    return found
