"""A run's directory survives being killed, and keeps no secrets."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import (
    LineFile,
    replacing_folder,
    whole_lines,
    write_atomic,
)
from swarm_ui.storage.run_directory import RunDirectory, without_secrets


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", name="phone", config={"rounds": 3})


def test_created_run_can_be_taken_up_again(run: RunDirectory) -> None:
    run.set_status({"iteration": 2})
    again = RunDirectory.open_existing(run.path)
    assert again.config() == {"rounds": 3}
    assert again.status()["iteration"] == 2
    assert again.traces.is_dir()
    document = again.document()
    assert "msgspec" in document["packages"] and document["platform"]  # type: ignore[operator]


def test_default_path_holds_the_name_and_is_never_taken_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [RunDirectory.create(None, name="My Phone!", config={}).path for _ in range(3)]
    assert len(set(paths)) == 3
    assert all(p.parent == Path("runs") and "-my-phone" in p.name for p in paths)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (None, "there is no run"),
        ({}, "no config.json"),
        ({"config.json": "{"}, "cannot be read"),
        ({"config.json": '{"run_version": 99}'}, "version 99"),
    ],
)
def test_what_is_not_a_run_cannot_be_resumed(
    tmp_path: Path, files: dict[str, str] | None, words: str
) -> None:
    path = tmp_path / "other"
    if files is not None:
        path.mkdir()
        for name, text in files.items():
            (path / name).write_text(text)
    with pytest.raises(ConfigError, match=words):
        RunDirectory.open_existing(path)


def test_secrets_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    config = {
        "model": {"api_key": "sk-1", "base_url": "http://me:sk-2@host/v1", "max_tokens": 64},
        "critics": [{"Auth-Token": "sk-3", "name": "scripted"}],
    }
    run = RunDirectory.create(tmp_path / "run", config=config)
    assert "sk-" not in (run.path / "config.json").read_text()
    assert run.config() == {
        "model": {"base_url": "http://host/v1", "max_tokens": 64},
        "critics": [{"name": "scripted"}],
    }
    assert without_secrets({"monkey": 1, "authToken": "sk-4", "apiKey": "sk-5"}) == {"monkey": 1}
    for name in ("passwd", "db_passwords", "sshPassphrase", "session-cookies"):
        assert without_secrets({name: "sk-6"}) == {}


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("http://me:p@ss@host/v1", "http://host/v1"),  # as it is used: see urllib's urlsplit
        ("http://a:b@h/v1 and http://c:d@h/v2", "http://h/v1 and http://h/v2"),
        ("http://host/v1?to=a@b", "http://host/v1?to=a@b"),
        ("http://host/@me", "http://host/@me"),
        (
            "http://h/v1?api_key=sk&page=2&accessToken=t#top",
            "http://h/v1?api_key=&page=2&accessToken=#top",
        ),
        ("http://h/v1#access_token=t&page=2", "http://h/v1#access_token=&page=2"),
        ("what is key=value?key=1", "what is key=value?key=1"),  # no address
    ],
)
def test_only_the_secrets_of_an_address_is_left_out(address: str, kept: str) -> None:
    assert without_secrets({"url": address}) == {"url": kept}


def test_metrics_survive_a_torn_line_and_damage_in_the_middle_is_told(run: RunDirectory) -> None:
    run.log({"iteration": 0, "success": 0.5})
    with (run.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 1, "succ')
    assert [m["iteration"] for m in run.metrics()] == [0]
    run.log({"iteration": 1, "success": 0.6})
    assert [m["iteration"] for m in run.metrics()] == [0, 1]
    (run.path / "metrics.jsonl").write_bytes(b'{"a": 1}\nnonsense\n')
    with pytest.raises(TraceError, match=r"metrics\.jsonl"):
        run.metrics()


def full(descriptor: int) -> None:
    raise OSError("disk full")


def test_write_atomic_leaves_the_old_file_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "status.json"
    write_atomic(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rename = tmp_path / "adapter", os.rename
    folder.mkdir()
    (folder / "weights").write_text("old")

    def interrupted(source: Path, target: Path) -> None:
        if source.name == "new":
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder) as made:
        (made / "weights").write_text("new")
    assert (folder / "weights").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_line_file_cuts_a_torn_line_away_and_appends_all_lines_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    assert whole_lines(path) == [b"one", b"two"]
    with closing(LineFile(path)) as file:
        file.append(b"three", b"four")
    whole = b"one\ntwo\nthree\nfour\n"
    with closing(LineFile(path)) as file:
        with monkeypatch.context() as patch:
            patch.setattr("swarm_ui.files.os.fsync", full)
            with pytest.raises(OSError, match="disk full"):
                file.append(b"five")
        assert path.read_bytes() == whole
        file.append(b"six")
    assert path.read_bytes() == whole + b"six\n"
