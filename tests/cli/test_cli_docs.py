"""docs/cli.md: its lists are those of the commands, and its examples run."""

from __future__ import annotations

import re
import shlex

import pytest
from cli_reference import PAGE, commands, filled
from cli_world import Shell, shell  # noqa: F401

from swarm_ui import Journal, RunPaused
from swarm_ui.experiment.live.server import LiveServer
from swarm_ui.experiment.user_code import graph_named

TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = [
    line.removeprefix("$ ")
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def test_lists_of_options_are_those_of_the_commands() -> None:
    assert filled(TEXT) == TEXT, "run: python tests/cli/cli_reference.py"


def test_every_command_has_a_section_with_its_options_and_an_example() -> None:
    for name in commands():
        assert f"\n## {name}\n" in TEXT and f"<!-- options {name} -->\n\n- " in TEXT
        assert any(f"{line} ".startswith(f"swarm-ui {name} ") for line in EXAMPLES), name


LETTERS = """\
from swarm_ui import CollabGraph
from swarm_ui.nodes import Ask
team = CollabGraph([Ask("approve", "Send this letter?", options=("yes", "no"))])
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_examples_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    pytest.importorskip("torch")
    monkeypatch.setattr(LiveServer, "serve_forever", lambda self: None)  # until Ctrl-C, else
    (shell.folder / "letters_team.py").write_text(LETTERS, encoding="utf-8")
    with pytest.raises(RunPaused):
        graph_named("letters_team:team").run_sync(
            "thank Ada", run_id="letter/1", journal=Journal("letters.jsonl")
        )
    for example in EXAMPLES:
        words = shlex.split(example)
        assert words[0] == "swarm-ui"
        done = shell("", *words[1:])
        # One task may be failed (1); nothing of these is wrong, missing or broken.
        assert done.code in ((0, 1) if words[1] == "run" else (0,)), (example, done.err)
        assert done.out + done.err, example
