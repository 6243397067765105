"""The configuration file: every mistake at once, flags over file, and the commented template."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401

from swarm_ui.cli.commands.config import TEMPLATE
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, checked, read_draft
from swarm_ui.experiment.runs import (
    Run,
    check_config,
    check_training_config,
    evaluation_settings,
    trainer_config,
)
from swarm_ui.experiment.settings import Settings
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.stage1 import CorpusConfig, FinetuneConfig
from swarm_ui.storage.run_directory import RunDirectory

BAD = """\
[environment]
taks = ["a"]

[team]
agents = "four"
rounds = 0
views = "shufle"
edges = { a = 1 }

[trian]
iterations = 2
"""


def test_all_mistakes_come_at_once_each_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(BAD, encoding="utf-8")
    flags = {"team.temperature": ("--temperature", -1.0)}
    with pytest.raises(ConfigError) as raised:
        checked(read_draft(path, flags, ["nonsense", "run.repot=true"]))
    told = str(raised.value).splitlines()
    assert told[0].startswith("8 mistakes") or told[0].startswith("9 mistakes")
    for said in (
        f"{path}:2: [environment] has no setting 'taks'; did you mean 'tasks'?",
        f"{path}:5: [team] agents = 'four'",
        f"{path}:6: [team] rounds = 0",
        f"{path}:7: [team] views = 'shufle': expected 'same', 'shuffle', 'window', "
        "'pane'; did you mean 'shuffle'?",
        f"{path}:8: [team] edges",
        f"{path}:10: no section [trian]; did you mean 'train'?",
        "--temperature: [team] temperature = -1.0",
        "--set nonsense: expected SECTION.NAME=VALUE",
        "--set run.repot: [run] has no setting 'repot'; did you mean 'report'?",
    ):
        assert any(line.strip().startswith(said) for line in told), (said, told)
    assert len(told) == 10


def test_mistakes_of_meaning_are_told_with_those_of_form(shell: Shell) -> None:  # noqa: F811
    text = """\
[environment]
split = "nope"
tasks = ["contacts-ad", "notes-creat"]
[model]
name = "nobody"
adapters = "nowhere"
[team]
agents = 2
edges = "agent_9>agent_0"
[run]
concurrency = 0
"""
    (shell.folder / "bad.toml").write_text(text, encoding="utf-8")
    told = shell("eval -c bad.toml").err.splitlines()
    assert told == [
        "error: 6 mistakes in the configuration:",
        "  bad.toml:11: [run] concurrency = 0: expected a whole number >= 1",
        "  bad.toml:2: 'phone' has no split 'nope'; it has parameters, templates, apps, "
        "validation, train",
        "  bad.toml:3: 'phone' has no task 'contacts-ad'; did you mean 'contacts-add'?",
        "  bad.toml:3: 'phone' has no task 'notes-creat'; did you mean 'notes-create'?",
        "  bad.toml:5: no model 'nobody': expected base, general, smollm2, the folder of a model, "
        "org/name on the Hugging Face Hub, script:FILE, module:factory, or with --url the name "
        "that an endpoint serves",
        "  bad.toml:9: the edge 'agent_9>agent_0': there is no agent_9; the team has agent_0, "
        "agent_1",
    ], "each on one line where nobody reads on a terminal"
    assert not (shell.folder / "runs").exists()


def test_a_section_that_is_wrong_in_form_is_not_judged_by_its_meaning(shell: Shell) -> None:  # noqa: F811
    done = shell("eval --split reference --set environment.name=3 --model base")
    assert "[environment] name = 3: expected text, got a whole number" in done.err
    assert "reference" not in done.err, "of which environment is not known"


def test_flags_win_over_set_and_set_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[team]\nagents = 2\nrounds = 2\ndensity = 0.25\n", encoding="utf-8")
    flags = {"team.agents": ("--agents", 4), "team.vote": ("--vote", None)}
    found = checked(
        read_draft(path, flags, ["team.agents=3", "team.rounds=3", "model.name=my/model"])
    )
    team = found.team
    assert (team.agents, team.rounds, team.density, team.vote) == (4, 3, 0.25, "majority")
    assert found.model.name == "my/model"


def test_a_file_that_is_no_toml_or_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[team\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be parsed as TOML"):
        read_draft(path, {}, [])
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        read_draft(tmp_path / "none.toml", {}, [])


def test_config_writes_every_setting_with_its_default() -> None:
    values = tomllib.loads(TEMPLATE)
    values.pop("train")
    for name, kind in (("synthesize", CorpusConfig), ("finetune", FinetuneConfig)):
        assert msgspec.convert(values.pop(name), kind) == kind()
    assert msgspec.convert(values, Config) == Config()
    for section in (Config().environment, Config().model, Config().team, Config().run):
        for name in section.__struct_fields__:
            assert f"\n{name} = " in TEMPLATE or f"\n# {name} = " in TEMPLATE, name


def test_the_training_section_of_config_is_sound(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "a.toml"
    path.write_text(TEMPLATE, encoding="utf-8")
    wrong = ["train.iteration=2", "train.update.method=dp", "train.rank=0"]
    with pytest.raises(ConfigError) as raised:
        checked(read_draft(path, {}, wrong), train=True)
    assert "did you mean 'iterations'?" in str(raised.value)
    assert "did you mean 'dpo'?" in str(raised.value)


def test_the_file_of_config_changes_no_default_of_a_command(tmp_path: Path) -> None:
    """It used to train one greedy agent."""
    pytest.importorskip("torch")
    path = tmp_path / "a.toml"
    path.write_text(TEMPLATE, encoding="utf-8")
    for check in (check_config, check_training_config):
        assert check(read_draft(path, {}, [])).team == check(read_draft(None, {}, [])).team
    trained = check_training_config(read_draft(path, {}, []))
    assert trainer_config(trained) == trainer_config(check_training_config(Draft()))
    assert (trained.team.agents, trained.team.rounds, trained.team.temperature) == (4, 3, 0.8)


def test_the_commented_settings_of_training_are_the_defaults() -> None:
    pytest.importorskip("torch")
    section = TEMPLATE[TEMPLATE.index("[train]") : TEMPLATE.index("[synthesize]")]
    values = tomllib.loads(re.sub(r"^# (?=\w+ = )", "", section, flags=re.MULTILINE))["train"]
    shown = msgspec.convert(values, TeamConfig)
    assert shown == trainer_config(check_training_config(Draft()))


def test_train_and_the_demo_have_one_default_method() -> None:
    pytest.importorskip("torch")
    assert trainer_config(check_training_config(Draft())).update.method == Settings().method
    given = {"train.update.method": ("--method", "dpo")}
    assert trainer_config(check_training_config(read_draft(None, given, []))).update.method == "dpo"


def test_config_does_not_overwrite(shell: Shell) -> None:  # noqa: F811
    assert shell("config mine.toml").code == 0
    again = shell("config mine.toml")
    assert again.code == 2 and "--force" in again.err
    assert shell("config mine.toml --force").code == 0
    assert shell("config -").out == TEMPLATE


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(shell: Shell) -> None:  # noqa: F811
    before = sorted(shell.folder.rglob("*"))
    done = shell(f"eval {LAMP} --model script:right.txt --agents 3 --edges chain --dry-run --json")
    assert done.code == 0
    assert done.json["edges"] == "agent_0>agent_1, agent_1>agent_2"
    assert done.json["episodes: episodes"] == "2"
    assert sorted(shell.folder.rglob("*")) == before


def test_one_agent_is_trained_in_one_round() -> None:
    pytest.importorskip("torch")
    team = check_training_config(read_draft(None, {}, ["team.agents=1"])).team
    assert (team.agents, team.rounds, team.views) == (1, 1, "shuffle")


def test_the_phone_is_trained_on_its_training_templates_only() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ConfigError, match="training uses only 'train'"):
        check_training_config(read_draft(None, {}, ["environment.split=apps"]))


def test_a_team_is_evaluated_on_the_screens_and_edges_that_it_was_trained_with(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch")
    given = [
        "environment.screenshots=true",
        "train.edges=fixed",
        "team.seed=3",
        "team.density=0.25",
    ]
    config = check_training_config(read_draft(None, {}, given))
    model = msgspec.structs.replace(config.model, name="org/model", device="cuda", vision=True)
    config = msgspec.structs.replace(config, model=model)
    folder = RunDirectory.create(tmp_path / "r", name="r", config={})
    found = evaluation_settings(Run(config, "train", directory=folder))
    expected = {
        "environment.name": "phone", "environment.screenshots": True, "model.name": "org/model",
        "model.device": "cuda", "model.vision": True, "model.adapters": str(folder.adapters),
        "team.agents": 4, "team.rounds": 3, "team.views": "shuffle", "team.density": 0.25,
        "team.seed": 3,
    }  # fmt: skip
    assert found == expected
