"""What the command line does, from Python: settings, a training, an evaluation, a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui import ConfigError
from swarm_ui.experiment import Run, compare, evaluate, load, train
from swarm_ui.report import write_report


@pytest.mark.timeout(120)
def test_a_trained_team_is_compared_with_one_agent_on_the_same_episodes(tmp_path: Path) -> None:
    config = load(
        overrides=["env.name=phone", "team.agents=2", "train.iterations=1", "train.episodes=8",
                   "train.update.steps=4"]
    )  # fmt: skip
    run = Run.create(tmp_path / "team", config)
    history = train(run)
    assert len(history) == 1 and run.trained
    assert train(run) == history  # nothing is left to do
    assert "The phone is simulated" in write_report(run.path).read_text()
    after = evaluate(run, split="parameters", episodes=8)
    alone = Run.create(tmp_path / "alone", load(overrides=["team.agents=1"]))
    before = evaluate(alone, split="parameters", episodes=8)
    difference = compare(after, before)
    assert difference.n == 8 and difference.low <= difference.mean <= difference.high
    assert len(evaluate(alone, split="apps", episodes=2).arms) == 1
    with pytest.raises(ConfigError, match="no split 'app'"):
        evaluate(alone, split="app")


def test_a_run_continues_only_with_the_same_settings(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", load(overrides=["team.agents=3"]))
    free = ["place.concurrency=2", "run.report=false"]
    assert Run.open(tmp_path / "run", free).config.team.agents == 3
    with pytest.raises(ConfigError, match=r"team\.agents: cannot be changed"):
        Run.open(tmp_path / "run", ["team.agents=4"])


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("env.devices=4", "only in env invented"),
        ("env.screenshot=true", "env.screenshots"),
        ("model.temperature=1", "'team.temperature'"),
        ("train.lr=0.1", "'train.update.lr'"),
        ("env.agents=2", "'team.agents'"),
        ("team.max_steps=2", "'env.max_steps'"),
        ("team.agents=x", "whole number"),
        ("team.views=pan", "pane"),
        ("train.update.methd=dpo", "train.update.method"),
        ("train.iterations=-1", "iterations"),
        ("place.gpus=1", "only in place ray"),
        ("model.url=http://h/v1", "model.name"),
        ("synthesize.level=[3]", "levels"),
        ("modl.name=base", "model"),
        ("env.tasks=contacts-ad", "contacts-add"),
        ("team.edges=agent_0>agent_5", "agent_5"),
    ],
)
def test_a_wrong_setting_is_told_with_what_was_meant(override: str, told: str) -> None:
    with pytest.raises(ValueError, match=":") as caught:
        load(overrides=[override])
    assert told in str(caught.value)


def test_an_override_of_a_name_leaves_the_settings_of_another_variant_behind(
    tmp_path: Path,
) -> None:
    script = tmp_path / "replies.txt"
    script.write_text("one")
    before = load(overrides=["env.name=invented", "env.devices=3"])
    after = load(base=before.plain(), overrides=["env.name=phone", f"model.name=script:{script}"])
    assert (after.env.name, after.model.name) == ("phone", f"script:{script}")


def test_all_mistakes_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("[team]\nagents = 900\n[env]\ndevices = 2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="4 mistakes") as caught:
        load(file, ["model.name=bse", "--log run.log=nobody"])
    for place in (f"{file}:2", f"{file}:4", "model.name", "--log"):
        assert place in str(caught.value)
