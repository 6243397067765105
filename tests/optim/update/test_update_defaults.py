"""Defaults of an update: one for each setting, by the size of the model."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import msgspec
import pytest
from learning_fakes import BUTTONS, ButtonWorld, TinyModel, button_team

from swarm_ui.errors import ConfigError
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences.pairs import PairConfig
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateConfig
from swarm_ui.optim.update.update_config import SMALL_MODEL, defaults_for
from swarm_ui.rollout import Job

EMBEDDED, SMOLLM2 = defaults_for(190_000), defaults_for(134_500_000)


def test_a_partial_section_has_the_defaults_of_a_missing_one() -> None:
    """Naming any option of [train.update] used to give 75 steps instead of 35."""
    named = msgspec.convert({"update": {"method": "dpo"}}, TeamConfig).filled(EMBEDDED)
    assert named.update == dataclasses.replace(TeamConfig().filled(EMBEDDED).update, method="dpo")
    assert (named.update.steps, named.shared_steps, named.update.lr) == (35, 75, 3e-3)


def test_a_language_model_gets_a_lower_rate_and_smaller_forwards() -> None:
    large = TeamConfig().filled(SMOLLM2)
    assert (large.update.lr, large.update.steps, large.shared_steps) == (2e-4, 20, 40)
    assert SMOLLM2.micro_batch_tokens < EMBEDDED.micro_batch_tokens
    assert defaults_for(SMALL_MODEL) == SMOLLM2


def test_what_is_set_stays() -> None:
    given = TeamConfig(update=UpdateConfig(lr=1e-4, steps=3), shared_steps=5)
    assert given.filled(EMBEDDED) == given.filled(SMOLLM2) == given


def test_a_trainer_fills_them_in_for_its_model(tmp_path: Path) -> None:
    model = TinyModel()

    def jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
        return [Job("press", rng.randrange(len(BUTTONS))) for _ in range(count)]

    trainer = TeamTrainer(model, button_team(model), ButtonWorld, jobs, folder=tmp_path)
    assert (trainer.config.update.steps, trainer.config.shared_steps) == (35, 75)
    assert AdapterTrainer(TinyModel(["one"])).config.steps == 35


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": -1}, "steps"), ({"lr": 0.0}, "lr must be > 0"),
        ({"micro_batch_tokens": 0}, "micro_batch"), ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"nll_weight": -1.0}, "nll_weight must be >= 0, got -1.0"), ({"floor": 5}, "floor"),
        ({"warmup": -1}, "warmup"), ({"batch_size": 0, "beta": 0.0}, "batch_size.*; beta"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        UpdateConfig(**settings)  # type: ignore[arg-type]


def test_shares_of_pairs_are_shares() -> None:
    for name in ("easy_share", "adversary_share", "abstentions"):
        with pytest.raises(ConfigError, match=rf"pairs: {name} must be in \[0, 1\], got 35"):
            PairConfig(**{name: 35})
