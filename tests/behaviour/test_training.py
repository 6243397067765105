"""Training of a team: what it starts from, what it learns from, and what it says if it cannot."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from cli_world import EASY, Shell, shell  # noqa: F401
from learning_fakes import ButtonWorld, TinyModel, button_team

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

from swarm_ui.optim import ScriptedCritic, TeamConfig, TeamTrainer, UpdateConfig

AGENTS = ("agent_0", "agent_1", "agent_2")
UPDATE = UpdateConfig(method="rft", steps=3, batch_size=8, lr=1e-3)
SHORT = {"iterations": 1, "episodes": 8, "shared_steps": 3, "rank": 4, "alpha": 4, "seed": 5,
         "lr_decay": 0.0}  # fmt: skip


def trainer(model: TinyModel, *, world: Any = ButtonWorld, **given: Any) -> TeamTrainer:
    """A training of three agents in the world of four buttons; ``given``: settings, and the
    arguments ``critic`` and ``folder``."""
    critic, folder = given.pop("critic", ScriptedCritic(ButtonWorld)), given.pop("folder", None)

    def jobs(iteration: int, count: int, rng: random.Random) -> list[tuple[str, int]]:
        return [("press", rng.randrange(10_000)) for _ in range(count)]

    config = TeamConfig(**{"update": UPDATE, **SHORT, **given})
    return TeamTrainer(
        model, button_team(model), world, jobs, config=config, critic=critic, folder=folder
    )


def train(model: TinyModel, *, resume: bool = False, **given: Any) -> Any:
    return asyncio.run(trainer(model, **given).run(resume=resume))


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


def test_loaded_adapters_stay_each_agents_own_with_the_default_settings() -> None:
    model = trained(*AGENTS)
    before = weights(model)
    (metrics,) = train(model).history
    after = weights(model)
    assert [update.adapter for update in metrics.updates] == list(AGENTS)
    assert not metrics.shared
    for name in AGENTS:
        assert 0 < distance(after[name], before[name]) < 1
        others = [distance(after[name], before[other]) for other in AGENTS if other != name]
        assert min(others) > 2


def test_only_the_adapters_that_a_training_added_start_as_one() -> None:
    model = trained("agent_1")
    before = weights(model)["agent_1"]
    (metrics,) = train(model).history
    after = weights(model)
    assert [update.adapter for update in metrics.updates] == ["agent_0", "agent_1"]
    assert torch.equal(after["agent_0"], after["agent_2"])
    assert 0 < distance(after["agent_1"], before) < 1 < distance(after["agent_1"], after["agent_0"])


def test_copies_of_one_adapter_still_share_the_first_iterations() -> None:
    model = trained("agent_0")
    for name in AGENTS[1:]:
        model.add_adapter(name, copy_from="agent_0")
    (metrics,) = train(model).history
    after = weights(model)
    assert metrics.shared
    assert torch.equal(after["agent_0"], after["agent_1"])


@pytest.mark.parametrize("loaded", [(), ("agent_1",), AGENTS])
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


_HOW = "--agents 2 --rounds 1 --rollouts 4 --iterations 1 --set run.report=false"
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


def test_a_team_that_was_trained_by_command_is_continued(shell: Shell) -> None:  # noqa: F811
    own = "--set train.update.steps=3"
    done = shell(f"{_TRAIN} --set train.shared_iterations=0 {own} --out a")
    assert done.code == 0, done.err
    before = saved(shell.folder / "a")
    apart = distance(*before)
    more = f"{_TRAIN} {own} --set train.update.lr=0.0001 --adapters a/adapters"
    assert "while one is shared" not in shell(f"{more} --dry-run --json").json["update"]
    done = shell(f"{more} --out b")
    assert done.code == 0, done.err
    after = saved(shell.folder / "b")
    assert distance(*after) > apart / 2
    assert all(0 < distance(new, old) < apart / 2 for new, old in zip(after, before, strict=True))


def test_steps_of_shared_iterations_have_no_effect_on_adapters_that_differ(
    shell: Shell,  # noqa: F811
) -> None:
    done = shell(f"{_TRAIN} --set train.shared_iterations=0 --set train.update.steps=1 --out a")
    assert done.code == 0, done.err
    for setting in ("train.shared_steps=3", "train.shared_iterations=2"):
        done = shell(f"{_TRAIN} --adapters a/adapters --set {setting} --dry-run")
        assert done.code == 2 and setting.partition("=")[0] in done.err
