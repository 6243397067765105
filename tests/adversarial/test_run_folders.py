"""A run's folder from a stranger: its settings run no code and open no connection unasked."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from cli_world import LAMP, WRONG, Shell

EVIL = """\
from pathlib import Path
Path("owned").touch()
from cli_world import Lamp
from swarm_ui.nodes.models.scripted import ScriptedModel
def model():
    return ScriptedModel([])
"""


@pytest.fixture
def folder(shell: Shell, request: pytest.FixtureRequest) -> Path:
    """A run of two agents, with a module beside it that notes its import."""
    assert shell(f"eval {LAMP} -n 2 -a 2 -r 1 --edges chain -m script:right.txt --out r").code == 0
    module = f"evil_{abs(hash(request.node.name))}"
    (shell.folder / f"{module}.py").write_text(EVIL, encoding="utf-8")
    (shell.folder / "module").write_text(module, encoding="utf-8")
    return shell.folder


def change(folder: Path, section: str, **settings: str) -> None:
    """Write settings into the run's configuration, as a stranger would."""
    path = folder / "r/config.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["config"][section] = settings
    path.write_text(json.dumps(document), encoding="utf-8")


def module(folder: Path) -> str:
    return (folder / "module").read_text(encoding="utf-8")


CHANGED = ("replay r --cut agent_0>agent_1 --json", "replay r --again --json",
           "replay r/traces/episodes.jsonl --again --json",
           "eval --resume r --json", "eval --resume r --dry-run --json")  # fmt: skip


def test_a_replay_without_a_change_imports_nothing(shell: Shell, folder: Path) -> None:
    change(folder, "model", name=f"{module(folder)}:model")
    change(folder, "env", name=f"{module(folder)}:Lamp")
    done = shell("replay r --json")
    assert done.code == 0 and done.json["asked"] == 0 and done.json["same"] is True
    assert not (folder / "owned").exists()


@pytest.mark.parametrize(
    ("section", "called", "line"),
    [*(("model", "model", line) for line in CHANGED),
     ("env", "Lamp", "eval --resume r --dry-run --json")],
)  # fmt: skip
def test_a_module_is_imported_only_with_trust(
    shell: Shell, folder: Path, section: str, called: str, line: str
) -> None:
    named = f"{module(folder)}:{called}"
    change(folder, section, name=named)
    done = shell(line)
    assert done.code == done.json["exit"] == 2
    what = {"model": "the model", "env": "the environment"}[section]
    assert f"import and call '{named}' ({what})" in done.json["message"]
    assert "--trust" in done.json["message"] and not (folder / "owned").exists()
    shell(f"{line} --trust")
    assert (folder / "owned").exists() is ("--dry-run" not in line or section == "env")


@pytest.mark.parametrize("line", CHANGED[:-1])
def test_a_key_is_sent_only_with_trust(
    shell: Shell, folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_KEY", "very-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        change(folder, "model", name="tiny", url=url, key_env="HOME_KEY")
        assert shell("replay r --json").json["asked"] == 0
        for more in ("", "model.timeout=1"):
            done = shell(f"{line} {more}")
            assert done.code == 2, done.err
            said = f"connect to {url} with the key in the variable HOME_KEY"
            assert said in done.json["message"] and "very-secret" not in done.out + done.err
        with pytest.raises(TimeoutError):
            server.accept()


def test_the_users_own_endpoint_does_not_get_a_variable_that_the_folder_names(
    shell: Shell, folder: Path
) -> None:
    change(folder, "model", name="tiny", url="http://x/v1", key_env="AWS_SECRET_ACCESS_KEY")
    done = shell("replay r --again --url http://127.0.0.1:9/v1")
    assert done.code == 2 and "send the variable AWS_SECRET_ACCESS_KEY to" in done.err


def test_settings_of_the_user_need_no_trust(shell: Shell, folder: Path) -> None:
    change(folder, "model", name=f"{module(folder)}:model")
    done = shell("replay r --model script:wrong.txt --json")
    assert done.code == 0 and done.json["asked"] == 2 and not (folder / "owned").exists()
    done = shell("replay r --model script:wrong.txt --json --say", f"agent_0:0={WRONG}")
    assert done.code == 0 and not (folder / "owned").exists()
