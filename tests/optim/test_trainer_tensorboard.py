"""TensorBoard's own reader finds the figures of the metrics."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from learning_fakes import TinyModel
from learning_run import run

from swarm_ui.errors import MissingExtra
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.loggers import TensorBoardLogger
from swarm_ui.optim.metrics import IterationMetrics, scalars

pytest.importorskip("tensorboard")


@pytest.fixture(scope="module")
def history() -> tuple[IterationMetrics, ...]:
    return run(TinyModel(), None).history


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def write(board: TensorBoardLogger, metrics: IterationMetrics) -> None:
    board.log(scalars(metrics), metrics.iteration)


def test_every_figure_comes_back(history: tuple[IterationMetrics, ...], tmp_path: Path) -> None:
    board = TensorBoardLogger(tmp_path)
    for metrics in history:
        write(board, metrics)
    board.finish("finished")
    found = curves(tmp_path)
    assert [step for step, _ in found["rollout/success"]] == [0, 1, 2]
    expected = {(name, m.iteration): v for m in history for name, v in scalars(m).items()}
    drawn = {(name, step): value for name, points in found.items() for step, value in points}
    assert drawn == {key: pytest.approx(value, rel=1e-6) for key, value in expected.items()}
    assert {"loss/agent_0", "edge/agent_0 to agent_1", "pairs/agent_2"} <= found.keys()


def test_what_was_not_measured_is_no_zero(history: tuple[IterationMetrics, ...]) -> None:
    import msgspec

    bare = msgspec.structs.replace(history[0], success=None, credit=None, edge_update=None)
    names = set(scalars(bare))
    assert not names & {"rollout/success", "rollout/success_low", "credit/mean", "edges/entropy"}


def test_a_resumed_run_overwrites_what_it_does_again(
    history: tuple[IterationMetrics, ...], tmp_path: Path
) -> None:
    board = TensorBoardLogger(tmp_path)
    write(board, history[0])
    write(board, history[1])  # killed here, before the checkpoint
    board = TensorBoardLogger(tmp_path)
    write(board, history[1])
    write(board, history[2])
    board.finish("finished")
    assert [step for step, _ in curves(tmp_path)["rollout/success"]] == [0, 1, 2]


@pytest.mark.slow
def test_the_trainer_draws_its_curves_and_shows_its_settings(tmp_path: Path) -> None:
    callbacks = Callbacks(loggers=[TensorBoardLogger(tmp_path / "tensorboard")])
    history = run(TinyModel(), tmp_path, callbacks=callbacks).history
    drawn = curves(tmp_path / "tensorboard")
    assert [value for _, value in drawn["rollout/success"]] == [
        pytest.approx(metrics.success) for metrics in history
    ]
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b'"train.update.method": "dpo"' in events.read_bytes()


def test_without_the_package_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match="tensorboard"):
        TensorBoardLogger(tmp_path)
