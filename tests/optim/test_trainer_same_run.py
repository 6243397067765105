"""However a training is run, it is the same one: interrupted, killed, ahead, in processes."""

from __future__ import annotations

import asyncio
import copy
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from forked import Child
from learning_fakes import ButtonWorld, Contrary, TinyAgent, TinyModel, precise
from learning_run import CONFIG, run, run_until, trainer
from process_group import Work, in_processes, started
from same_run import checkpoints, equal, lines, same_run, weights
from sent_rollouts import SentRollouts

from swarm_ui import CollabGraph, Completion, ConfigError, Episode, LearningError, Request
from swarm_ui.files import append_line
from swarm_ui.optim import ScriptedCritic, TeamConfig, TeamTrainer, Trust, UpdateConfig
from swarm_ui.optim.distributed import LostProcess, Processes
from swarm_ui.optim.trainer import TeamResult

LESS = replace(
    CONFIG, episodes=6,
    update=UpdateConfig(method="dpo", steps=3, batch_size=8, lr=5e-2),
)  # fmt: skip
"""Iterations of a tenth of a second."""


def whole(folder: Path, **other: Any) -> tuple[TinyModel, TeamResult]:
    """A training that nothing disturbs."""
    model = TinyModel()
    return model, run(model, folder / "whole", **{"config": LESS, **other})


def resumed(folder: Path, **other: Any) -> tuple[TinyModel, TeamResult]:
    model = TinyModel()
    return model, run(model, folder, resume=True, **{"config": LESS, **other})


# -- interrupted ------------------------------------------------------------------------------


class Stop(Exception):
    """Ends a run in the middle of an iteration."""


@pytest.mark.slow
def test_a_resumed_run_on_the_real_thing_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from swarm_ui.environments import phone
    from swarm_ui.nodes import LocalModel
    from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer

    two = TeamConfig(
        iterations=2, shared_iterations=1, episodes=6,
        guide=1.0, rank=4, update=UpdateConfig(method="dpo", steps=2, batch_size=4),
    )  # fmt: skip

    def trained(name: str, config: TeamConfig) -> tuple[Any, TeamResult]:
        model = LocalModel.untrained(ScreenTokenizer([]), width=32, layers=1, heads=2, seed=0)
        team = CollabGraph.collaborative(2, 2, model=model, temperature=0.8, views="shuffle")
        made = TeamTrainer(
            team, phone.PhoneEnvironment, phone.training_jobs, config=config,
            critic=ScriptedCritic(phone.PhoneEnvironment), folder=tmp_path / name,
        )  # fmt: skip
        return model, made.run_sync(resume=True)

    expected = trained("whole", two)
    half = trained("parts", replace(two, iterations=1))
    assert not equal(weights(half[0]), weights(expected[0]))
    same_run(*trained("parts", two), *expected)
    files = tmp_path / "parts" / "checkpoints" / "iteration-0002" / "adapters" / "agent_1"
    assert (files / "adapter_model.safetensors").exists()


def test_killed_twice_and_resumed_equals_never_killed(tmp_path: Path) -> None:
    expected, folder = whole(tmp_path, config=CONFIG), tmp_path / "killed"
    assert Child(lambda: run_until(folder, "update", 1, CONFIG)).wait() == -signal.SIGKILL
    assert checkpoints(folder) == ["iteration-0001"]
    assert Child(lambda: run_until(folder, "rename", 2, CONFIG)).wait() == -signal.SIGKILL
    assert checkpoints(folder)[0].startswith(".iteration-0002-")
    same_run(*resumed(folder, config=CONFIG), *expected)
    assert [line["iteration"] for line in lines(folder)] == [0, 1, 2]
    assert checkpoints(folder) == ["iteration-0003"]


def test_a_loss_that_is_no_number_loses_nothing(tmp_path: Path) -> None:
    class Breaks(TinyModel):
        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found, tokens = super().forward_logprobs(*batch)
            at_work = self.module.active if self.module.training else None
            broken = at_work == "agent_1" and self.versions["agent_1"] == 2
            return (found * float("nan") if broken else found), tokens

    folder = tmp_path / "broken"
    with pytest.raises(LearningError, match="adapter 'agent_1', step 1 of 3"):
        run(Breaks(), folder, config=LESS)
    assert checkpoints(folder) == ["iteration-0002"] and len(lines(folder)) == 2
    same_run(*resumed(folder), *whole(tmp_path))


def test_a_finished_run_does_nothing_and_is_not_mixed_with_another(tmp_path: Path) -> None:
    expected, folder = whole(tmp_path), tmp_path / "whole"
    same_run(*resumed(folder), *expected)
    with pytest.raises(ConfigError, match="resume it"):
        run(TinyModel(), folder, config=LESS)
    with pytest.raises(ConfigError, match=r"guide: None then, 0\.1 now"):
        resumed(folder, config=replace(LESS, guide=0.1))


def test_a_resumed_run_trusts_its_critic_as_the_whole_one_does(tmp_path: Path) -> None:
    def trusted() -> dict[str, Any]:
        critic = Trust(Contrary(ButtonWorld, 0.03))
        scores = [1.0, 0.0] * 24 + [1.0, 0.0] * 6
        critic.learn([[s, s] for s in scores], [1.0, 0.0] * 24 + [0.0, 1.0] * 6, ["t"] * 60)
        return {"critic": critic, "config": LESS}

    def stop(iteration: int, episodes: object) -> None:
        if iteration == 2:
            raise Stop

    expected = whole(tmp_path, **trusted())
    assert len({tuple(m["critic_weights"]) for m in expected[1].history}) == 3
    with pytest.raises(Stop):
        resumed(tmp_path / "parts", on_episodes=stop, **trusted())
    same_run(*resumed(tmp_path / "parts", **trusted()), *expected)


def test_lines_of_others_stay_and_those_of_an_iteration_that_did_not_end_go(
    tmp_path: Path,
) -> None:
    def log(last: int) -> Any:
        def note(iteration: int, episodes: object) -> None:
            append_line(metrics, b'{"kind": "rollouts", "iteration": %d}' % iteration)
            if iteration == last:
                raise Stop

        return note

    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"kind": "evaluation"}\n')
    with pytest.raises(Stop):
        run(TinyModel(), tmp_path, config=LESS, on_episodes=log(1))
    with metrics.open("a") as file:
        file.write('{"kind": "iteration", "iteration": 99}\n{"torn')
    resumed(tmp_path, on_episodes=log(9))
    kinds = [(line["kind"], line.get("iteration")) for line in lines(tmp_path)]
    assert kinds == [
        ("evaluation", None),
        *((kind, k) for k in range(3) for kind in ("rollouts", "iteration")),
    ]


# -- played elsewhere ---------------------------------------------------------------------------


class PublishedAgent(TinyAgent):
    """Answers requests for a version with the weights that were published as this version."""

    def __init__(self, model: TinyModel) -> None:
        super().__init__(model)
        self.published: dict[str, TinyModel] = {}

    def publish(self) -> dict[str, str]:
        current = {name: f"{name}@{number}" for name, number in self.model.versions.items()}
        self.published |= dict.fromkeys(current.values(), copy.deepcopy(self.model))
        return current

    async def prepare(self) -> None: ...

    def _answer(self, request: Request) -> Completion:
        name, _, number = (request.adapter or "").partition("@")
        model = self.published[f"{name}@{number}"] if number else self.model
        return TinyAgent(model)._answer(msgspec.structs.replace(request, adapter=name))


def published(*, sent: bool = False, **other: Any) -> tuple[TinyModel, TeamResult]:
    model = TinyModel()
    team = CollabGraph.collaborative(
        3, 2, model=PublishedAgent(model), edges=[], temperature=1.0,
        adapters=[f"agent_{k}" for k in range(3)],
    )  # fmt: skip
    places = SentRollouts(ButtonWorld) if sent else ButtonWorld
    given = {"config": LESS, **other}
    return model, run(model, None, team=team, make_environment=places, **given)


@pytest.mark.parametrize("method", ["grpo", "dpo"])
def test_episodes_played_elsewhere_teach_what_those_played_here_teach(method: Any) -> None:
    settings, versions = replace(LESS, update=replace(LESS.update, method=method)), []

    def note(iteration: int, episodes: Sequence[Episode]) -> None:
        calls = [c for e in episodes for s in e.steps for c in s.trace.calls]
        versions.append({c.adapter for c in calls if c.node == "agent_0"})

    there = published(config=settings, sent=True, on_episodes=note)
    assert versions == [{f"agent_0@{number}"} for number in range(3)]
    same_run(*there, *published(config=settings))


# -- in several processes ---------------------------------------------------------------------

EXACT = replace(CONFIG, shared_iterations=0)


def leading(folder: Path, expected: tuple[TinyModel, TeamResult], settings: TeamConfig = EXACT,
            **other: Any) -> Work:  # fmt: skip
    """The first process: trains the team in ``folder``, from wherever it stands."""

    def work(processes: Processes) -> None:
        model = precise()
        team = trainer(model, folder=folder, config=settings, **other)
        result = asyncio.run(team.run(resume=True, processes=processes))
        same_run(model, result, *expected, tolerance=1e-7)

    return work


def following(processes: Processes) -> None:
    asyncio.run(trainer(precise(), config=EXACT).run(processes=processes))


@pytest.mark.parametrize("settings", [EXACT, pytest.param(CONFIG, marks=pytest.mark.slow)])
def test_two_processes_train_the_team_of_one(tmp_path: Path, settings: TeamConfig) -> None:
    quiet = precise()
    expected = quiet, run(quiet, None, config=settings)
    in_processes([leading(tmp_path / "run", expected, settings), following], tmp_path)
    assert checkpoints(tmp_path / "run") == ["iteration-0003"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3])
def test_a_run_that_lost_a_process_goes_on_with_any_number(tmp_path: Path, processes: int) -> None:
    quiet = precise()
    expected = quiet, run(quiet, None, config=EXACT)
    folder, victim = tmp_path / "run", tmp_path / "victim"

    def doomed(group: Processes) -> None:
        victim.write_text(str(os.getpid()))
        following(group)

    def strike(iteration: int, what: str, done: int, total: int) -> None:
        if what == "update" and iteration == 1:
            os.kill(int(victim.read_text()), signal.SIGKILL)

    def leader(group: Processes) -> None:
        with pytest.raises(LostProcess, match=r"process 1 of 2: .* One of them ended"):
            leading(folder, expected, on_progress=strike)(group)

    codes = [child.wait() for child in started([leader, doomed], tmp_path)]
    assert codes == [0, -signal.SIGKILL], (tmp_path / "stderr-0").read_text()
    assert checkpoints(folder) == ["iteration-0001"]
    works = [leading(folder, expected), *[following] * (processes - 1)]
    in_processes(works, tmp_path / "again")
