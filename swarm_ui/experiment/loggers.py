"""Where a run's numbers go: ``tensorboard``, ``wandb``, ``mlflow``, a plug-in, or code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from swarm_ui.errors import MissingExtra, brief
from swarm_ui.experiment.plugins import load, make, named_by_user, unknown_name
from swarm_ui.report.results import Results
from swarm_ui.storage.run_directory import without_secrets

Log = Callable[[Mapping[str, float]], object]
"""Receives numbers by name, as the attribute ``log`` of a trainer; ``iteration`` is one of them. A
method ``close``, if it has one, is called at the end of the run."""
Settings = Mapping[str, Any]
"""Settings of a run by dotted names, without secrets."""


@contextmanager
def _tensorboard(folder: Path, settings: Settings) -> Iterator[Log]:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:

        def log(numbers: Mapping[str, float]) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, int(numbers.get("iteration", 0)))
            writer.flush()

        yield log


@contextmanager
def _wandb(folder: Path, settings: Settings) -> Iterator[Log]:
    import wandb

    quiet = wandb.Settings(
        console="off", save_code=False, disable_git=True, disable_job_creation=True,
        x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True,
    )  # fmt: skip
    project, name = os.environ.get("WANDB_PROJECT") or "swarm-ui", folder.resolve().name
    with wandb.init(project=project, name=name, dir=str(folder), resume="auto",
                    config=dict(settings), settings=quiet) as run:  # fmt: skip
        yield lambda numbers: run.log(dict(numbers), step=int(numbers.get("iteration", 0)))


@contextmanager
def _mlflow(folder: Path, settings: Settings) -> Iterator[Log]:
    import mlflow

    if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
        mlflow.set_experiment("swarm-ui")
    with mlflow.start_run(run_name=folder.resolve().name):
        mlflow.log_params({name: str(value)[:500] for name, value in settings.items()})
        yield lambda numbers: mlflow.log_metrics(
            dict(numbers), step=int(numbers.get("iteration", 0))
        )


LOGGERS = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}
"""Those of this package by name, which is also that of the Python package and of the extra."""


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
    """
    shown, made = _flat(without_secrets(settings)), dict[str, Log]()

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

    open_ones = {name: ExitStack() for name in names}

    def open_one(name: str) -> None:
        if name in LOGGERS:
            made[name] = open_ones[name].enter_context(LOGGERS[name](folder, shown))
            return
        made[name] = make("loggers", name, folder, shown)
        open_ones[name].callback(getattr(made[name], "close", lambda: None))

    for name in names:
        attempt(name, lambda name=name: open_one(name))  # type: ignore[misc]
    try:
        yield log
    finally:
        for name, each in open_ones.items():
            attempt(name, each.close)


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names; lists become texts such as ``"2, 3"``."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            listed = isinstance(value, list | tuple)
            found[f"{prefix}{name}"] = ", ".join(map(str, value)) if listed else value
    return found


def logger_mistakes(names: Sequence[str]) -> Iterator[str]:
    """Mistakes in the choice of loggers. Nothing is imported."""
    for number, name in enumerate(names):
        if name in names[:number]:
            yield f"the logger '{name}' is named twice"
        elif name not in LOGGERS and not named_by_user("loggers", name):
            yield unknown_name("loggers", name, LOGGERS)


def check_loggers(names: Sequence[str]) -> None:
    """Check that the loggers can be imported, before anything is written.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: a factory cannot be imported.
    """
    for name in names:
        if name not in LOGGERS:
            load("loggers", name)
        elif find_spec(name) is None:
            raise MissingExtra(name, f"the logger '{name}'", name)


def logger_demands(names: Sequence[str]) -> Iterator[str]:
    """Actions of the loggers in a folder's settings that need the user's consent."""
    for name in names:
        if name not in LOGGERS:
            yield f"import and call '{name}' (a logger)"
        elif name != "tensorboard":  # which only writes into the folder of the run
            yield f"send settings and metrics to {name}"


def result_scalars(results: Results) -> Mapping[str, float]:
    """The results of an evaluation as metrics by name: ``success/SPLIT``, with its interval, and
    costs."""
    found: dict[str, float] = {}
    for arm in results.arms:
        name = arm.name or arm.split.replace("/", "-") or "episodes"
        if (interval := arm.success) is not None:
            ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
            found |= {f"success/{name}{end}": value for end, value in ends.items()}
        found |= {
            f"episodes/{name}": arm.counted,
            f"masked/{name}": arm.masked,
            f"calls_per_decision/{name}": arm.work.calls_per_decision,
            f"tokens/{name}": arm.work.tokens,
            f"seconds/{name}": arm.work.seconds,
        }
    return found
