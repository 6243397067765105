"""Where a run's numbers go: ``tensorboard``, ``wandb``, ``mlflow``, a plug-in, or code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swarm_ui.errors import MissingExtra, brief
from swarm_ui.experiment.plugins import load, make, named_by_user, unknown_name
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.storage.run_directory import without_secrets

Log = Callable[[Mapping[str, float]], object]
"""Receives numbers by name, as the attribute ``log`` of a trainer; ``iteration`` is one of them. A
method ``close``, if it has one, is called at the end of the run."""
Settings = Mapping[str, Any]
"""Settings of a run by dotted names, without secrets."""


class _TensorBoard:
    def __init__(self, folder: Path, settings: Settings) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard", "TensorBoard", error.name or "tensorboard") from error
        self._open: Any = lambda: SummaryWriter(str(folder / "tensorboard"))
        self._writer: Any = None

    def __call__(self, numbers: Mapping[str, float]) -> None:
        self._writer = self._writer or self._open()
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, int(numbers.get("iteration", 0)))
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Wandb:
    def __init__(self, folder: Path, settings: Settings) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtra("wandb", "Weights & Biases", error.name or "wandb") from error
        quiet = wandb.Settings(
            console="off", save_code=False, disable_git=True, disable_job_creation=True,
            x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True,
        )  # fmt: skip
        project = os.environ.get("WANDB_PROJECT") or "swarm-ui"
        self._open: Any = lambda: wandb.init(
            project=project, name=folder.resolve().name, dir=str(folder), resume="auto",
            config=dict(settings), settings=quiet,
        )  # fmt: skip
        self._run: Any = None

    def __call__(self, numbers: Mapping[str, float]) -> None:
        self._run = self._run or self._open()
        self._run.log(dict(numbers), step=int(numbers.get("iteration", 0)))

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()


class _MLflow:
    def __init__(self, folder: Path, settings: Settings) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise MissingExtra("mlflow", "MLflow", error.name or "mlflow") from error
        self._mlflow, self._name, self._settings = mlflow, folder.resolve().name, settings
        self._run: Any = None

    def __call__(self, numbers: Mapping[str, float]) -> None:
        if self._run is None:
            if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
                self._mlflow.set_experiment("swarm-ui")
            self._run = self._mlflow.start_run(run_name=self._name)
            self._mlflow.log_params({k: str(v)[:500] for k, v in self._settings.items()})
        self._mlflow.log_metrics(dict(numbers), step=int(numbers.get("iteration", 0)))

    def close(self) -> None:
        if self._run is not None:
            self._mlflow.end_run()


LOGGERS: dict[str, Callable[[Path, Settings], Log]] = {
    "tensorboard": _TensorBoard,
    "wandb": _Wandb,
    "mlflow": _MLflow,
}
"""Those of this package by name. Each is made from the folder and the settings of the run, and
begins to write with the first numbers."""
_LOCAL = ("tensorboard",)
"""Loggers that only write into the folder of the run."""


@contextmanager
def opened_log(
    names: Sequence[str], folder: Path, settings: Mapping[str, Any], warn: Callable[[str], None]
) -> Iterator[Log]:
    """One function that passes numbers on to all loggers of a run.

    An exception of a logger is reported once; the logger is then left out, and the run continues.

    Args:
        names: those of :data:`LOGGERS`, plug-ins, or ``module:factory``; all are called with the
            folder and the settings.
        folder: the folder of the run.
        settings: the settings of the run, which may be nested and hold secrets.
        warn: called with one line when a logger fails.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: a factory cannot be called, or returns no function.
    """
    shown = _flat(without_secrets(settings))
    made = {name: _made(name, folder, shown) for name in names}

    def attempt(name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            made.pop(name, None)
            text = " ".join(brief(error).split())
            warn(f"the logger {name} failed: {type(error).__name__}: {text}; the run continues "
                 "without it")  # fmt: skip

    def log(numbers: Mapping[str, float]) -> None:
        for name, each in tuple(made.items()):
            attempt(name, lambda each=each: each(numbers))  # type: ignore[misc]

    try:
        yield log
    finally:
        for name, each in tuple(made.items()):
            attempt(name, getattr(each, "close", lambda: None))


def _made(name: str, folder: Path, settings: Settings) -> Log:
    if name in LOGGERS:
        return LOGGERS[name](folder, settings)
    made: Log = make("loggers", name, folder, settings)
    return made


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names; lists become texts such as ``"2, 3"``."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            found[f"{prefix}{name}"] = ", ".join(map(str, value))
        else:
            plain = value is None or isinstance(value, bool | int | float | str)
            found[f"{prefix}{name}"] = value if plain else str(value)
    return found


def logger_mistakes(names: Sequence[str]) -> Iterator[str]:
    """Mistakes in the choice of loggers. Nothing is imported."""
    for number, name in enumerate(names):
        if name in names[:number]:
            yield f"the logger '{name}' is named twice"
        elif name not in LOGGERS and not named_by_user("loggers", name):
            yield unknown_name("loggers", name, LOGGERS)


def check_loggers(names: Sequence[str]) -> None:
    """Import the loggers, before anything is written.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: a factory cannot be imported.
    """
    for name in names:
        if name in LOGGERS:
            LOGGERS[name](Path(), {})  # imports its package, and writes nothing
        else:
            load("loggers", name)


def logger_demands(names: Sequence[str]) -> Iterator[str]:
    """Actions of the loggers in a folder's settings that need the user's consent."""
    for name in names:
        if name not in LOGGERS:
            yield f"import and call '{name}' (a logger)"
        elif name not in _LOCAL:
            yield f"send settings and metrics to {name}"


def result_scalars(results: Results) -> Mapping[str, float]:
    """The results of an evaluation as metrics by name: ``success/SPLIT``, with its interval, and
    costs."""
    found: dict[str, Any] = {}
    for arm in results.arms:
        name = _name(arm)
        interval = arm.success
        if interval is not None:
            found |= {
                f"success/{name}": interval.mean,
                f"success/{name}_low": interval.low,
                f"success/{name}_high": interval.high,
            }
        found |= {
            f"episodes/{name}": arm.counted,
            f"masked/{name}": arm.masked,
            f"calls_per_decision/{name}": arm.work.calls_per_decision,
            f"tokens/{name}": arm.work.tokens,
            f"seconds/{name}": arm.work.seconds,
        }
    return {name: float(value) for name, value in found.items()}


def _name(arm: ArmResult) -> str:
    """The split, with the seed if a run has several."""
    return arm.name or arm.split.replace("/", "-") or "episodes"
