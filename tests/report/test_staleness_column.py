"""The table of a training tells how many updates an iteration was behind, if any was."""

from __future__ import annotations

from typing import Any

from swarm_ui.report.training_metrics import training_cost


def lines(*staleness: int | None) -> list[dict[str, Any]]:
    made = []
    for k, behind in enumerate(staleness):
        line = {"kind": "iteration", "iteration": k, "cpu_seconds": 1.5}
        made.append(line if behind is None else {**line, "staleness": behind})
    return made


def test_updates_behind_are_a_column_where_some_iteration_was_behind() -> None:
    table = training_cost(lines(0, 1, 1))
    assert table is not None
    assert table.columns == ("iteration", "CPU-seconds", "updates behind")
    assert [row[-1] for row in table.rows] == [0, 1, 1]


def test_a_run_that_was_never_behind_has_no_such_column() -> None:
    for never in (lines(0, 0), lines(None, None)):
        table = training_cost(never)
        assert table is not None and table.columns == ("iteration", "CPU-seconds")
