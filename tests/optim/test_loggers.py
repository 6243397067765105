"""Loggers receive settings and metrics of a training run; one that fails ends nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from learning_fakes import TinyModel
from learning_run import run

from swarm_ui.errors import MissingExtra
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.loggers import (
    Logger,
    LoggerGroup,
    MLflowLogger,
    Status,
    WandbLogger,
    flat,
    logging_to,
)
from swarm_ui.optim.metrics import IterationMetrics, scalars


class Recording:
    """A logger that keeps what it receives, and fails where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.calls = fails, list[tuple[str, Any]]()

    def _keep(self, method: str, value: Any) -> None:
        self.calls.append((method, value))
        if self.fails == method:
            raise RuntimeError("the disk\nis full")

    def start(self, config: Mapping[str, Any]) -> None:
        self._keep("start", dict(config))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._keep("log", (step, dict(metrics)))

    def finish(self, status: Status) -> None:
        self._keep("finish", status)


def test_a_training_run_is_logged(tmp_path: Path) -> None:
    logger = Recording()
    assert isinstance(logger, Logger)
    more = {"model": {"name": "tiny", "url": "http://me:hunter2@host/v1", "api_key": "sk-1"}}
    callbacks = Callbacks(loggers=[logger], logged_config=more)
    history = run(TinyModel(), tmp_path, callbacks=callbacks).history

    (began, config), *logged, (ended, status) = logger.calls
    assert (began, ended, status) == ("start", "finish", "finished")
    assert config["train.update.method"] == "dpo" and config["train.iterations"] == 3
    assert config["team.agents"] == "agent_0, agent_1, agent_2" and config["model.name"] == "tiny"
    assert "hunter2" not in str(config) and "sk-1" not in str(config)
    assert all(v is None or isinstance(v, bool | int | float | str) for v in config.values())
    assert [value for _, value in logged] == [(m.iteration, scalars(m)) for m in history]

    again = Recording()
    run(TinyModel(), tmp_path, resume=True, callbacks=Callbacks(loggers=[again]))
    assert [method for method, _ in again.calls] == ["start", "finish"], "nothing was left to do"


def test_the_figures_of_an_iteration() -> None:
    history = run(TinyModel(), None).history
    found = scalars(history[0])
    played = history[0].episodes - history[0].masked
    assert found["rollout/success"] == history[0].success and found["rollout/episodes"] == played
    assert 0 <= found["rollout/success_low"] < found["rollout/success"]
    assert found["rollout/success"] < found["rollout/success_high"] <= 1
    assert {"credit/mean", "loss/agent_0", "pairs/total", "seconds/cpu"} <= set(found)
    odd = _changed(history[0], edge_probabilities={"a:1>b": 0.5})
    assert scalars(odd)["edge/a_1 to b"] == 0.5, "names that every logger accepts"


def _changed(metrics: IterationMetrics, **fields: Any) -> IterationMetrics:
    import msgspec

    changed: IterationMetrics = msgspec.structs.replace(metrics, **fields)
    return changed


@pytest.mark.parametrize(
    "method", ["log", *(pytest.param(m, marks=pytest.mark.slow) for m in ("start", "finish"))]
)
def test_a_logger_that_fails_is_reported_once_and_left_out(tmp_path: Path, method: str) -> None:
    broken, good, said = Recording(method), Recording(), list[str]()
    callbacks = Callbacks(loggers=[broken, good], on_warning=said.append)
    history = run(TinyModel(), tmp_path, callbacks=callbacks).history
    assert len(history) == 3
    (line,) = said
    assert line == (
        f"the logger Recording failed in {method}: RuntimeError: the disk is full; "
        "the run continues without it"
    )
    assert [m for m, _ in broken.calls].count(method) == 1 and broken.calls[-1][0] == method
    assert [m for m, _ in good.calls] == ["start", "log", "log", "log", "finish"]


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError(), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_the_status_says_how_a_run_ended(error: BaseException, status: str) -> None:
    logger = Recording()
    with pytest.raises(type(error)), logging_to([logger], {}, print):
        raise error
    assert logger.calls[-1] == ("finish", status)


def test_what_had_begun_is_ended_if_the_start_is_interrupted() -> None:
    class Slow(Recording):
        """A person loses patience while it connects."""

        def start(self, config: Mapping[str, Any]) -> None:
            raise KeyboardInterrupt

    first, slow, last = Recording(), Slow(), Recording()
    with pytest.raises(KeyboardInterrupt), logging_to([first, slow, last], {"a": 1}, print):
        raise AssertionError("the block is not run")
    assert first.calls == [("start", {"a": 1}), ("finish", "interrupted")]
    assert slow.calls == last.calls == []


def test_numbers_that_are_not_finite_are_left_out() -> None:
    logger = Recording()
    LoggerGroup([logger], print).log({"a": float("nan"), "b": float("inf"), "c": 1.0}, 0)
    assert logger.calls == [("log", (0, {"c": 1.0}))]


def test_settings_are_flat() -> None:
    nested = {"a": {"b": {"c": (1, 2)}, "d": None}, "path": Path("x")}
    assert flat(nested) == {"a.b.c": "1, 2", "a.d": None, "path": "x"}


@pytest.mark.parametrize(("make", "name"), [(WandbLogger, "wandb"), (MLflowLogger, "mlflow")])
def test_without_the_package_the_message_names_the_extra(
    make: type[Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"swarm-ui\[{name}\]"):
        make(tmp_path)
    assert list(tmp_path.iterdir()) == []
