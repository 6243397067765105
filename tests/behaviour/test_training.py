"""Training of a team: what it starts from, what it learns from, and what it says if it cannot."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_world import DEAD, EASY, LAMP, Shell
from learning_fakes import ButtonWorld, TinyModel, button_team

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

from swarm_ui import Action, Credit, Episode, Message, Step, Trace
from swarm_ui.optim import ScriptedCritic, TeamConfig, TeamTrainer, UpdateConfig

AGENTS = ("agent_0", "agent_1", "agent_2")
UPDATE = UpdateConfig(method="rft", steps=3, batch_size=8, lr=1e-3)
SHORT = {"iterations": 1, "episodes": 8, "rank": 4, "seed": 5}  # fmt: skip


def trainer(model: TinyModel, *, world: Any = ButtonWorld, **given: Any) -> TeamTrainer:
    """A training of three agents in the world of four buttons; ``given``: settings, and the
    arguments ``critic`` and ``folder``."""
    critic, folder = given.pop("critic", ScriptedCritic(ButtonWorld)), given.pop("folder", None)

    def jobs(count: int, /, *, seed: int) -> list[tuple[str, int]]:
        rng = random.Random(seed)
        return [("press", rng.randrange(10_000)) for _ in range(count)]

    config = TeamConfig(**{"update": UPDATE, **SHORT, **given})
    return TeamTrainer(button_team(model), world, jobs, config=config, critic=critic, folder=folder)


def train(model: TinyModel, *, resume: bool = False, **given: Any) -> Any:
    return asyncio.run(trainer(model, **given).run(resume=resume))


def updated(metrics: dict[str, Any]) -> list[str]:
    """The adapters that an iteration trained."""
    return [name.removeprefix("loss/") for name in metrics if name.startswith("loss/")]


def weights(model: TinyModel) -> dict[str, torch.Tensor]:
    """The weights of each adapter as one vector."""
    return {
        name: torch.cat([p.detach().flatten() for p in model.adapter_parameters(name)])
        for name in model.adapters
    }


def trained(*names: str) -> TinyModel:
    """A model with adapters that differ from each other."""
    model, draw = TinyModel(names), torch.Generator().manual_seed(3)
    for name in names:
        for parameter in model.adapter_parameters(name):
            parameter.data.copy_(torch.randn(parameter.shape, generator=draw) / 4)
    return model


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm())


@pytest.mark.parametrize("shared", [0, 3])
def test_loaded_adapters_stay_each_agents_own(shared: int) -> None:
    model = trained(*AGENTS)
    before = weights(model)
    (metrics,) = train(model, shared_iterations=shared).history
    after = weights(model)
    assert updated(metrics) == list(AGENTS)
    assert not metrics["shared"]
    for name in AGENTS:
        assert 0 < distance(after[name], before[name]) < 1
        others = [distance(after[name], before[other]) for other in AGENTS if other != name]
        assert min(others) > 2


def test_only_the_adapters_that_a_training_added_start_as_one() -> None:
    model = trained("agent_1")
    before = weights(model)["agent_1"]
    (metrics,) = train(model, shared_iterations=1).history
    after = weights(model)
    assert updated(metrics) == ["agent_0", "agent_1"]
    assert torch.equal(after["agent_0"], after["agent_2"])
    assert 0 < distance(after["agent_1"], before) < 1 < distance(after["agent_1"], after["agent_0"])


def test_equal_adapters_that_were_loaded_are_not_trained_as_one() -> None:
    model = trained("agent_0")
    for name in AGENTS[1:]:
        model.add_adapter(name)
        for own, other in zip(*map(model.adapter_parameters, (name, "agent_0")), strict=True):
            own.data.copy_(other.data)
    (metrics,) = train(model, shared_iterations=1).history
    after = weights(model)
    assert not metrics["shared"] and updated(metrics) == list(AGENTS)
    assert not torch.equal(after["agent_0"], after["agent_1"])


@pytest.mark.parametrize(
    "loaded",
    [
        pytest.param((), marks=pytest.mark.slow),
        ("agent_1",),
        pytest.param(AGENTS, marks=pytest.mark.slow),
    ],
)
def test_a_resumed_training_shares_what_it_would_have_shared(
    tmp_path: Path, loaded: tuple[str, ...]
) -> None:
    settings = {"iterations": 3, "shared_iterations": 2}
    whole = trained(*loaded)
    train(whole, folder=tmp_path / "whole", **settings)
    train(trained(*loaded), folder=tmp_path / "part", **settings | {"iterations": 1})
    # The loaded ones are in the checkpoint too: a model without them goes on.
    resumed = TinyModel()
    train(resumed, folder=tmp_path / "part", resume=True, **settings)
    got, expected = weights(resumed), weights(whole)
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in AGENTS)


_HOW = "--agents 2 --rounds 1 --rollouts 4 --iterations 1 run.report=false"
_TRAIN = f"train {EASY} {_HOW}"


def saved(folder: Path) -> list[torch.Tensor]:
    """The adapters of two agents in a run's folder, each as one vector."""
    return [
        torch.cat([
            value.flatten()
            for _, value in sorted(
                load_file(folder / f"adapters/agent_{k}/adapter_model.safetensors").items()
            )
        ])
        for k in range(2)
    ]  # fmt: skip


def test_a_team_that_was_trained_by_command_is_continued(shell: Shell) -> None:
    own = "train.update.steps=3"
    done = shell(f"{_TRAIN} train.shared_iterations=0 {own} --out a")
    assert done.code == 0, done.err
    before = saved(shell.folder / "a")
    apart = distance(*before)
    more = f"{_TRAIN} {own} train.update.lr=0.0001 --adapters a/adapters"
    assert "while one is shared" not in shell(f"{more} --dry-run --json").json["update"]
    done = shell(f"{more} --out b")
    assert done.code == 0, done.err
    after = saved(shell.folder / "b")
    assert distance(*after) > apart / 2
    assert all(0 < distance(new, old) < apart / 2 for new, old in zip(after, before, strict=True))


class Hopeless(ButtonWorld):
    """No episode is solved."""

    async def step(self, action: Action) -> Step:
        self.taken += 1
        return Step(observation=self._look(), reward=0.0, truncated=self.taken >= 2)


class Says:
    """A critic that gives every message the same credit."""

    name = "the one critic"

    def __init__(self, credit: float | None) -> None:
        self.credit = credit

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        return [Credit.each(episode, self.score) for episode in episodes]

    def score(self, message: Message, trace: Trace) -> float | None:
        return self.credit


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"world": Hopeless, "critic": None}, "no episode was solved"),
        ({"world": lambda: ButtonWorld(frozenset(range(10_000)))}, "environment broke in all 8"),
        ({"critic": Says(None)}, "'the one critic' scored no message"),
        ({"critic": Says(0.0)}, "'the one critic' found no reply right"),
        ({"critic": Says(0.5)}, "'the one critic' found no reply better or worse"),
        ({"critic": Says(1.0), "easy_share": 0.0}, "no reply was wrong"),
        ({"critic": Says(1.0), "update": replace(UPDATE, method="grpo")}, "the same credit"),
        ({"update": replace(UPDATE, steps=0)}, "0 optimiser steps"),
    ],
)
def test_an_iteration_that_trains_nothing_says_why(given: dict[str, Any], told: str) -> None:
    model = TinyModel()
    with pytest.warns(UserWarning, match="iteration 1 of 1") as warned:
        (metrics,) = train(model, **given).history
    assert [told in str(warning.message) for warning in warned] == [True]
    assert told in metrics["nothing_learned"]
    assert set(model.versions.values()) == {0}


def test_a_training_that_learned_nothing_ends_with_5_and_says_what_to_change(shell: Shell) -> None:
    done = shell(f"train {DEAD} {_HOW} --out a")
    assert done.code == 5
    assert "no episode was solved" in done.err and "easier tasks" in done.err
    assert "swarm-ui eval" not in done.err
    found = shell("train --resume a --trust --json")
    assert found.code == found.json["exit"] == 5 and not found.json["ok"]
    assert "no episode was solved" in found.json["reason"]


def test_a_training_that_learned_ends_with_0_and_the_command_that_tests_it(shell: Shell) -> None:
    done = shell(f"{_TRAIN} train.update.steps=1 --out a")
    assert done.code == 0 and "swarm-ui eval" in done.err


def test_python_and_the_command_line_have_one_default_method(shell: Shell) -> None:
    assert UpdateConfig().method == TeamConfig().update.method == "rft"
    shown = shell("train phone --dry-run --json").json["update"]
    assert shown.startswith(f"{UpdateConfig().method},")
    named = shell("train phone train.update.beta=0.2 --method dpo --dry-run --json")
    assert named.json["update"].startswith("dpo,")


def test_tasks_that_are_held_out_are_not_trained_on(shell: Shell) -> None:
    held = "env.held_out"
    rest = "--iterations 1 --rollouts 6 --agents 1 --critic outcome train.update.steps=1"
    shell(f"train {LAMP} {held}=['light'] {rest} --out t")
    lines = [
        json.loads(line)
        for path in (shell.folder / "t/traces").glob("train*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert {line["episode"]["task"] for line in lines} == {"glow"}
    both = shell(f"train phone notes-create {held}=['notes-create'] --dry-run")
    assert both.code == 2 and "'notes-create' is to be played and held out" in both.err
    unknown = shell(f"train phone {held}=['notes-creat'] --dry-run")
    assert unknown.code == 2 and "did you mean 'notes-create'?" in unknown.err
    assert "does not read it" in shell(f"eval phone {held}=['notes-create']").err
