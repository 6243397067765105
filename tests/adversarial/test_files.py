"""Commands write only what they were asked to write, and read no file through a link."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_world import LAMP, Shell

from swarm_ui.storage.run_directory import RunDirectory


@pytest.fixture
def run(shell: Shell) -> Path:
    assert shell(f"eval {LAMP} -n 1 -m script:right.txt --out r").code == 0
    return shell.folder / "r"


def test_view_replaces_no_file_that_is_not_a_report(shell: Shell, run: Path) -> None:
    shutil.copy(run / "traces/episodes.jsonl", "notes.jsonl")
    mine = shell.folder / "notes.html"
    mine.write_text("<p>my notes</p>", encoding="utf-8")
    done = shell("view notes.jsonl --no-open")
    assert done.code == 2 and "'notes.html' exists and is not a report" in done.err
    assert mine.read_text(encoding="utf-8") == "<p>my notes</p>"
    mine.unlink()
    assert shell("view notes.jsonl --no-open").code == 0
    assert shell("view notes.jsonl --no-open").code == 0, "a report is written again"


def test_export_reads_no_file_outside_of_the_run(shell: Shell, run: Path) -> None:
    secret = shell.folder / "secret"
    secret.mkdir()
    (secret / "id_rsa").write_text("key", encoding="utf-8")
    adapter = RunDirectory.open_existing(run).adapters / "agent_0"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text("{}", encoding="utf-8")
    for link, target in ((adapter / "weights", secret / "id_rsa"), (adapter.parent / "b", secret)):
        link.symlink_to(target)
        done = shell("export r adapters -o out")
        assert done.code == 2 and f"'{link.relative_to(shell.folder)}' is a symbolic" in done.err
        assert not (shell.folder / "out").exists()
        link.unlink()
    (run / "traces/more.jsonl").symlink_to(run / "traces/episodes.jsonl")
    done = shell("export r episodes")
    assert done.code == 2 and "is a symbolic link" in done.err and done.out == ""


def test_export_writes_through_no_link(shell: Shell, run: Path) -> None:
    adapter = run / "adapters/agent_0"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text("{}", encoding="utf-8")
    mine = shell.folder / "mine"
    mine.mkdir()
    (mine / "adapter_config.json").write_text("mine", encoding="utf-8")
    (shell.folder / "out").mkdir()
    (shell.folder / "out/agent_0").symlink_to(mine)
    done = shell("export r adapters -o out --force")
    assert done.code == 2 and "is a symbolic link" in done.err
    (shell.folder / "file").symlink_to(mine / "adapter_config.json")
    assert shell("export r episodes -o file --force").code == 0
    assert (mine / "adapter_config.json").read_text(encoding="utf-8") == "mine"
