"""TensorBoard's own reader finds the figures of the metrics."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from learning_fakes import TinyModel
from learning_run import run

from swarm_ui.errors import MissingExtra
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.tensorboard import TensorBoard, scalars

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


def test_every_figure_comes_back(history: tuple[IterationMetrics, ...], tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    for metrics in history:
        board.write(metrics)
    board.close()
    found = curves(tmp_path)
    assert [step for step, _ in found["rollout/success"]] == [0, 1, 2]
    expected = {(name, m.iteration): value for m in history for name, value in scalars(m)}
    drawn = {(name, step): value for name, points in found.items() for step, value in points}
    assert drawn == {key: pytest.approx(value, rel=1e-6) for key, value in expected.items()}
    assert {"loss/agent_0", "edge/agent_0 to agent_1", "pairs/agent_2"} <= found.keys()


def test_what_was_not_measured_is_no_zero(history: tuple[IterationMetrics, ...]) -> None:
    import msgspec

    bare = msgspec.structs.replace(history[0], success=None, credit=None, edge_update=None)
    names = {name for name, _ in scalars(bare)}
    assert not names & {"rollout/success", "credit/mean", "edges/entropy"}


def test_a_resumed_run_overwrites_what_it_does_again(
    history: tuple[IterationMetrics, ...], tmp_path: Path
) -> None:
    board = TensorBoard(tmp_path)
    board.write(history[0])
    board.write(history[1])  # killed here, before the checkpoint
    board = TensorBoard(tmp_path)
    board.write(history[1])
    board.write(history[2])
    board.close()
    assert [step for step, _ in curves(tmp_path)["rollout/success"]] == [0, 1, 2]


def test_the_trainer_draws_its_curves(tmp_path: Path) -> None:
    callbacks = Callbacks(on_iteration=TensorBoard(tmp_path / "tensorboard").write)
    history = run(TinyModel(), tmp_path, callbacks=callbacks).history
    drawn = curves(tmp_path / "tensorboard")
    assert [value for _, value in drawn["rollout/success"]] == [
        pytest.approx(metrics.success) for metrics in history
    ]


def test_without_the_package_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match="tensorboard"):
        TensorBoard(tmp_path)
