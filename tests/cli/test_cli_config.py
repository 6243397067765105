"""The settings of a command: a file, words over it, and the commented template."""

from __future__ import annotations

import re
import tomllib

import pytest
from cli_world import LAMP, Shell

from swarm_ui.experiment.config import Config
from swarm_ui.experiment.loading import load, setting_names, template


def test_mistakes_of_meaning_are_told_with_those_of_form(shell: Shell) -> None:
    text = """\
[eval]
split = "nope"
[env]
tasks = ["contacts-ad", "notes-creat"]
[model]
name = "nobody"
[team]
agents = 2
edges = "agent_9>agent_0"
[place]
concurrency = 0
"""
    (shell.folder / "bad.toml").write_text(text, encoding="utf-8")
    done = shell("eval -c bad.toml")
    assert done.code == 2 and "6 mistakes in the settings" in done.err
    for said in ("bad.toml:2: eval.split: 'phone' has no split 'nope'", "bad.toml:4: env.tasks",
                 "did you mean 'notes-create'?", "bad.toml:6: model.name", "bad.toml:9: team.edges",
                 "bad.toml:11: place.concurrency: got 0"):  # fmt: skip
        assert said in done.err
    assert not (shell.folder / "runs").exists()


def test_words_and_options_override_the_file(shell: Shell) -> None:
    (shell.folder / "a.toml").write_text('[team]\nagents = 2\nedges = "chain"\n')
    line = f"eval {LAMP} --model script:right.txt -c a.toml --dry-run --json"
    assert shell(line).json["team"] == "2 agents, 1 round"
    assert shell(f"{line} team.rounds=2 -a 3").json["team"] == "3 agents, 2 rounds"


def test_every_setting_is_in_the_template_and_the_template_changes_none() -> None:
    text = template()
    assert load(None) == Config() == Config.model_validate(tomllib.loads(text))
    for env in ("phone", "invented", "handset", "miniwob"):
        for name in set(setting_names(env)) - {"model.kind"}:
            assert re.search(rf"^# {re.escape(name.partition('.')[2])}[ .]", text, re.MULTILINE), (
                name
            )
    whole = re.sub(r"^# (?=(agents|rounds|density|iterations|update\.beta) = \d)", "", text,
                   flags=re.MULTILINE)  # fmt: skip
    assert Config.model_validate(tomllib.loads(whole)) == Config()


def test_config_does_not_overwrite(shell: Shell) -> None:
    assert shell("config mine.toml").code == 0
    again = shell("config mine.toml")
    assert again.code == 2 and "--force" in again.err
    assert shell("config mine.toml --force").code == 0
    assert shell("config -").out == template()


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(shell: Shell) -> None:
    before = sorted(shell.folder.rglob("*"))
    done = shell(f"eval {LAMP} --model script:right.txt --agents 3 --edges chain --dry-run --json")
    assert done.code == 0
    assert done.json["edges"] == "agent_0>agent_1, agent_1>agent_2"
    assert done.json["episodes: episodes"] == "2"
    assert sorted(shell.folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("agents", "size"), [("", (4, 3, "shuffle", 0.8)), ("team.agents=1", (1, 1, "shuffle", 0.8))]
)
def test_a_team_that_learns_has_its_own_defaults(agents: str, size: tuple[object, ...]) -> None:
    team = load(overrides=[agents] if agents else []).team.filled(learning=True)
    assert (team.agents, team.rounds, team.views, team.temperature) == size
