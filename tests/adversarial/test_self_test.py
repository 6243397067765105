"""``swarm-ui doctor --self-test``: it passes here, and fails where a protection is gone."""

from __future__ import annotations

import pytest
from cli_world import Shell, shell  # noqa: F401

from swarm_ui.cli import self_test
from swarm_ui.experiment import load


def test_the_attacks_do_nothing_here(shell: Shell) -> None:  # noqa: F811
    done = shell("doctor --self-test --json")
    assert done.code == 0 and done.json["failed"] == [], done.json
    assert len(done.json["attacks"]) == len(self_test._CHECKS) >= 9
    assert list(shell.folder.iterdir()) != [] and not (shell.folder / "runs").exists()


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("SafeConsole", lambda: __import__("rich.console").console.Console()),
        ("expect_trust", lambda *_, **__: None),
        ("without_credentials", lambda url: url),
        ("page", lambda data: data.title),
        ("load", lambda path=None, **given: load(**given)),
        ("read_jsonl", lambda path: []),
    ],
)
def test_a_missing_protection_is_found(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    without: object,
) -> None:
    monkeypatch.setattr(self_test, name, without)
    done = shell("doctor --self-test")
    assert done.code == 1 and done.out.count("FAILED") == 1
