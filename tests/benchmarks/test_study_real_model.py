"""The study of a real model: its plan can be done in order, and its table averages over seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.studies.real_model.plan import Plan
from benchmarks.studies.real_model.report import over_seeds
from benchmarks.studies.real_model.sizes import Sizes
from swarm_ui.experiment.results import ArmResult
from swarm_ui.stats import Outcome


def test_each_cell_comes_after_those_it_needs(tmp_path: Path) -> None:
    cells = Plan(Sizes(blind_pages=3), tmp_path, (1, 2, 3), tmp_path / "critic").cells()
    done: set[str] = set()
    for cell in cells:
        assert cell.name not in done
        assert set(cell.needs) <= done
        done.add(cell.name)
    assert sum(cell.row == "stage 2: rft, learned critic, vote of 4" for cell in cells) == 3


def test_without_a_learned_critic_its_arm_is_left_out(tmp_path: Path) -> None:
    cells = Plan(Sizes(), tmp_path, (1,), None).cells()
    assert not any("learned" in cell.name for cell in cells)


def test_an_episode_counts_once_over_training_seeds() -> None:
    jobs = (("add", 1), ("add", 2), ("call", 1))
    one = ArmResult(split="apps", jobs=jobs, outcomes=(1.0, 0.0, None))
    two = ArmResult(split="apps", jobs=jobs, outcomes=(0.0, 0.0, None))
    other = ArmResult(split="apps", jobs=(("call", 7),), outcomes=(1.0,))
    assert over_seeds([one, two, other]) == [
        Outcome("add", 1, pytest.approx(0.5)),
        Outcome("add", 2, 0.0),
        Outcome("call", 1, None),
        Outcome("call", 7, 1.0),
    ]
