"""Team training whose updates are shared by several processes, one of which may die."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learning_fakes import TinyModel, precise
from learning_run import CONFIG, run, trainer
from process_group import Work, in_processes, started

from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.distributed import LostProcess, Processes
from swarm_ui.optim.trainer import TeamResult

EXACT = replace(CONFIG, shared_iterations=0)


def leading(
    folder: Path, config: TeamConfig, check: Callable[[TinyModel, TeamResult], None],
    **other: Any,
) -> Work:  # fmt: skip
    """The first process: trains the team in ``folder``, from wherever it stands."""

    def work(processes: Processes) -> None:
        model = precise()
        team = trainer(model, folder=folder, config=config, **other)
        check(model, asyncio.run(team.run(resume=True, processes=processes)))

    return work


def following(processes: Processes) -> None:
    asyncio.run(trainer(precise(), config=EXACT).run(processes=processes))


def as_quiet(quiet: TinyModel, expected: TeamResult, tolerance: float) -> Callable[..., None]:
    def check(model: TinyModel, result: TeamResult) -> None:
        assert model.versions == quiet.versions
        for name in quiet.adapters:
            for ours, theirs in zip(
                model.adapter_parameters(name), quiet.adapter_parameters(name), strict=True
            ):
                assert (ours - theirs).abs().max().item() <= tolerance
        assert [m["success"] for m in result.history] == [m["success"] for m in expected.history]
        assert [m["pairs"] for m in result.history] == [m["pairs"] for m in expected.history]
        gap = (result.edges.logits - expected.edges.logits).abs().max().item()
        assert gap <= tolerance

    return check


@pytest.mark.parametrize(
    ("config", "tolerance"),
    [
        pytest.param(EXACT, 1e-7, id="own adapters"),
        pytest.param(CONFIG, 1e-7, id="one shared first", marks=pytest.mark.slow),
    ],
)
def test_two_processes_train_the_team_of_one(
    tmp_path: Path, config: TeamConfig, tolerance: float
) -> None:
    quiet = precise()
    check = as_quiet(quiet, run(quiet, tmp_path / "quiet", config=config), tolerance)
    in_processes([leading(tmp_path / "run", config, check), following], tmp_path)
    saved = sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir())
    assert saved == ["iteration-0003"]


@pytest.mark.parametrize(
    "processes",
    [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)],
)
def test_a_run_that_lost_a_process_goes_on_with_any_number(tmp_path: Path, processes: int) -> None:
    quiet = precise()
    check = as_quiet(quiet, run(quiet, tmp_path / "quiet", config=EXACT), 1e-7)
    folder, victim = tmp_path / "run", tmp_path / "victim"

    def doomed(group: Processes) -> None:
        victim.write_text(str(os.getpid()))
        following(group)

    def strike(iteration: int, what: str, done: int, total: int) -> None:
        if what == "update" and iteration == 1:
            os.kill(int(victim.read_text()), signal.SIGKILL)

    def leader(group: Processes) -> None:
        with pytest.raises(LostProcess, match=r"process 1 of 2: .* One of them ended"):
            leading(folder, EXACT, check, on_progress=strike)(group)

    codes = [child.wait() for child in started([leader, doomed], tmp_path)]
    assert codes == [0, -signal.SIGKILL], (tmp_path / "stderr-0").read_text()
    assert [p.name for p in (folder / "checkpoints").iterdir()] == ["iteration-0001"]

    if processes == 1:
        model = precise()
        check(model, run(model, folder, resume=True, config=EXACT))
    else:
        works = [leading(folder, EXACT, check), *[following] * (processes - 1)]
        in_processes(works, tmp_path / "again")
