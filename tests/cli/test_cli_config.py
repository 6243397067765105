"""The settings of a command: a file, words over it, and the commented template."""

from __future__ import annotations

import re
import tomllib

import pytest
from cli_world import LAMP, Shell

from swarm_ui.experiment.config import Config
from swarm_ui.experiment.loading import load, setting_names, template


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


@pytest.mark.parametrize(
    ("agents", "size"), [("", (4, 3, "shuffle", 0.8)), ("team.agents=1", (1, 1, "shuffle", 0.8))]
)
def test_a_team_that_learns_has_its_own_defaults(agents: str, size: tuple[object, ...]) -> None:
    team = load(overrides=[agents] if agents else []).team.filled(learning=True)
    assert (team.agents, team.rounds, team.views, team.temperature) == size
