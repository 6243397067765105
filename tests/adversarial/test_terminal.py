"""Text of strangers is printed without the characters that control a terminal."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from cli_world import LAMP, Shell
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.terminal import SafeConsole, printable, printable_json
from swarm_ui.trace.jsonl import read_jsonl, write_jsonl

CLEAR = "\x1b[2J\x1b[H"
ALL = (
    "\x1b]0;owned\x07"  # the title
    "\x1b]52;c;b3duZWQ=\x1b\\"  # the clipboard
    "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\"  # a link
    "\x9b31m\x9d0;owned\x9csafe\rowned\x08\x7fuser\u202egnp.exe\u2066"
) + CLEAR
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("colours", [False, True])
def test_a_console_prints_its_own_colours_and_no_control_of_a_stranger(
    colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    console = SafeConsole()
    table = Table(ALL, title=ALL, caption=ALL)
    table.add_row(ALL)
    table.add_row(Text(ALL))
    for what in (ALL, Text(ALL, "red"), table):
        console.print(what)
    if not colours:  # bars move the cursor of a terminal
        with ProgressDisplay(console).bar(ALL, 2) as bar:
            bar.update(1, ALL)
    left = re.sub("\x1b\\[[0-9;]*m", "", written.getvalue())
    assert CONTROLS.findall(left) == [] and "\ufffd" in left
    assert colours or left == written.getvalue()


def test_a_trace_of_a_stranger_is_shown_harmlessly(shell: Shell) -> None:
    shell(f"eval {LAMP} -n 1 -m script:right.txt --out r")
    path = shell.folder / "r/traces/episodes.jsonl"
    text = path.read_text(encoding="utf-8").replace("light", json.dumps(ALL)[1:-1])
    path.write_text(text, encoding="utf-8")
    (episode,) = read_jsonl(path)
    assert ALL in episode.steps[0].trace.observation.goal
    named = shell.folder / f"x{CLEAR}.jsonl"
    write_jsonl(named, [episode])
    file = str(named)
    for words in (
        ("replay", "r"), ("replay", "r", "--json"), ("view", file, "--no-open"),
        ("view", file, "--no-open", "--json"), ("compare", "r", file), ("view", f"nowhere{ALL}"),
        ("eval", f"--nothing{ALL}"), ("eval", "-c", ALL),
    ):  # fmt: skip
        done = shell("", *words)
        assert CONTROLS.findall(done.out + done.err) == [], words
    assert shell("replay r --json").json["messages"]


def test_a_server_cannot_write_to_the_terminal(shell: Shell) -> None:
    module = "from swarm_ui.errors import EnvironmentFault\nfrom cli_world import Lamp\n"
    module += "class World(Lamp):\n    async def step(self, action):\n"
    module += f"        raise EnvironmentFault({ALL!r})\n"
    Path("hostile_world.py").write_text(module, encoding="utf-8")
    done = shell("eval hostile_world:World -n 1 -m script:right.txt")
    assert done.code == 3 and "�" in done.err and CONTROLS.findall(done.out + done.err) == []


@given(st.text())
def test_what_is_printed_keeps_everything_else(text: str) -> None:
    shown = printable(text)
    assert CONTROLS.findall(shown) == []
    shown.encode()
    kept = [c for c in text.replace("\r\n", "\n") if c == printable(c)]
    assert [c for c in shown if c != "�"] == [c for c in kept if c != "�"]
    assert json.loads(printable_json(json.dumps(text, ensure_ascii=False))) == text
