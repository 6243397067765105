"""The command line as it is typed."""

from __future__ import annotations

import pytest

from swarm_ui.__main__ import main


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "play ENV [TASK]" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paly"]) == 2
    written = capsys.readouterr()
    assert written.out == "" and "no command 'paly'" in written.err


def test_play_lists_tasks_and_names_what_it_does_not_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["play", "phone"]) == 0
    assert "contacts-add" in capsys.readouterr().out.splitlines()
    assert main(["play", "fridge"]) == 2
    assert "no environment 'fridge'" in capsys.readouterr().err
