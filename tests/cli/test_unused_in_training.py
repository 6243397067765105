"""A setting that would have no effect in training is a mistake, which names the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Draft, read_draft
from swarm_ui.experiment.runs import check_config, check_training_config

pytest.importorskip("torch")


def _draft(*settings: str) -> Draft:
    return read_draft(None, {}, settings)


def _file(folder: Path, text: str) -> Draft:
    path = folder / "a.toml"
    path.write_text(text, encoding="utf-8")
    return read_draft(path, {}, ())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("environment.episodes=8", "in training; give the number of rollouts with --rollouts"),
        ("environment.seed=7", "the seed of training is --seed"),
        ("run.concurrency=3", "episodes at once are train.concurrency"),
        ("run.fail_under=0.5", "it is for eval"),
        ("run.on=ray train.concurrency=3", "in workers of a Ray cluster"),
        ("team.seed=9", "where edges are redraw; the seed of training is --seed"),
        ("train.update.clip=0.5", "with method 'rft', only with grpo and gspo"),
        ("train.update.beta=3.0", "with method 'rft', only with dpo, ipo, grpo and gspo"),
        ("train.update.method=grpo train.update.nll_weight=3.0", "only with dpo and ipo"),
        ("train.update.method=grpo train.pairs.easy_share=0.1", "with method 'grpo'"),
        ("train.shared_iterations=0 train.shared_steps=3", "without shared iterations"),
        ("train.edge_credit=0.1", "on edges that are not learned"),
        ("train.edges=learned train.edge_credit=0.1 critic.kind=outcome", "without a critic"),
        ("train.edges=fixed train.graphs=9", "on fixed edges"),
        ("critic.trust=true critic.kind=outcome", "without a critic"),
        ("critic.adversary=llm critic.model=script:s.txt", "learns from no wrong replies"),
        (
            "critic.kind=learned critic.model=smollm2-critic critic.judge=llm",
            "answers no questions",
        ),
        ("critic.teacher=scripted train.update.method=gspo", "the agents' own replies"),
        ("critic.key_env=KEY", "without --critic llm"),
        ("environment.name=miniwob environment.split=blind", "training uses only 'reference'"),
        ("environment.name=miniwob environment.split=all", "training uses only 'reference'"),
        ("environment.name=phone environment.split=apps", "training uses only 'train'"),
    ],
)
def test_a_setting_without_effect_in_training_is_a_mistake(settings: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_training_config(_draft(*settings.split()))
    assert told in str(raised.value)


def test_a_file_may_serve_several_commands_and_places(tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        "[environment]\nepisodes = 50\nseed = 3\n[team]\nagents = 4\nseed = 3\n"
        "[run]\nconcurrency = 4\n[ray]\nworkers = 2\n[critic]\nkind = 'outcome'\n",
    )
    assert check_config(file).run.concurrency == 4
    assert check_training_config(file).environment.episodes == 50
