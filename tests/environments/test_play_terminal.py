"""A task by hand in the terminal, with scripted lines; and the command that starts it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import Shell, shell  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from small_world import Bare, Faulty, Notebook

from swarm_ui import read_jsonl
from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.play import play_in_terminal
from swarm_ui.environments.play.terminal import read_command
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.trace.records import Episode

SCREEN = Observation(
    goal="g",
    elements=(
        Element(index=0, role="button", text="Save"),
        Element(index=1, role="field", text="Title", editable=True),
        Element(index=2, role="field", description="Colour"),
    ),
)

ROOT = Path(__file__).resolve().parents[2]


async def test_a_line_that_is_no_text_is_a_mistake_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str | Exception] = [
        UnicodeDecodeError("utf-8", b"7 \xe9", 2, 3, "invalid continuation byte"), "quit",
    ]  # fmt: skip

    def typed(prompt: str) -> str:
        line = lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line

    monkeypatch.setattr("builtins.input", typed)
    told = io.StringIO()
    async with asyncio.timeout(5):
        await play_in_terminal(Notebook(), "write", 3, console=Console(file=told, width=100))
    assert "not UTF-8" in told.getvalue() and not lines


async def test_a_terminal_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(prompt: str) -> str:
        raise RuntimeError("input(): lost sys.stdin")

    monkeypatch.setattr("builtins.input", typed)
    with pytest.raises(RuntimeError, match="lost"):
        async with asyncio.timeout(5):
            await play_in_terminal(Notebook(), "write", 3, console=Console(file=io.StringIO()))


async def play(
    env: Environment, *lines: str, path: Path | None = None, task: str = "write"
) -> tuple[Episode | None, str]:
    """The episode, and what was shown."""
    told = io.StringIO()
    answers = iter(lines)

    async def read(prompt: str) -> str:
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    console = Console(file=told, width=100)
    episode = await play_in_terminal(env, task, 3, path=path, console=console, read=read)
    return episode, told.getvalue()


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("0", Action(action_type="click", index=0, target="Save")),
        (
            " 1  oat  milk ",
            Action(action_type="input_text", index=1, target="Title", text="oat  milk"),
        ),
        ("DOWN", Action(action_type="scroll", direction="down")),
        ("back", Action(action_type="navigate_back")),
        ("home", Action(action_type="navigate_home")),
        ("enter", Action(action_type="keyboard_enter")),
        ("answer forty two", Action(action_type="answer", text="forty two")),
        ("done", Action(action_type="status", goal_status="complete")),
        ("cannot", Action(action_type="status", goal_status="infeasible")),
        ('{"action_type": "click", "x": 3, "y": 4}', Action(action_type="click", x=3, y=4)),
        ("undo", "undo"),
        ("?", "help"),
        ("quit", "quit"),
    ],
)
def test_lines_that_mean_something(line: str, action: object) -> None:
    assert read_command(line, SCREEN) == action


@pytest.mark.parametrize(
    "line",
    ["7", "0 milk", "answer", "9" * 5000, "dance",
     '{"action_type": "dance"}', ""],
)  # fmt: skip
def test_slips_cost_no_step(line: str) -> None:
    with pytest.raises(ConfigError):
        read_command(line, SCREEN)


@given(st.text(max_size=40))
def test_any_line_is_understood_or_refused(line: str) -> None:
    with contextlib.suppress(ConfigError):
        found = read_command(line, SCREEN)
        assert isinstance(found, Action) or found in ("undo", "help", "quit")


async def test_a_task_is_done_and_saved(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    episode, told = await play(Notebook(), "3 milk", "help", "8", "0", path=path)
    assert episode is not None and episode.success is True
    assert read_jsonl(path) == [episode] and episode.policy == "person"
    assert [str(s.executed) for s in episode.steps] == [
        "input_text “Note” [3] 'milk'",
        "click “Save” [0]",
    ]
    assert "Write “milk” and save it" in told and "[milk]" in told
    assert "or an action as JSON" in told and "no element 8: the screen has 4" in told
    assert "solved in 2 steps" in told and f"saved in {path}" in told.replace("\n", "")


async def test_an_action_is_taken_back_as_if_it_had_not_been_done() -> None:
    episode, told = await play(Notebook(), "undo", "3 bread", "1", "undo", "undo", "3 milk", "0")
    assert episode is not None and episode.success is True and len(episode.steps) == 2
    assert told.count("there is nothing to undo") == 1


async def test_without_snapshots_nothing_can_be_taken_back() -> None:
    episode, told = await play(Bare(), "3 milk", "undo", "0")
    assert episode is not None and len(episode.steps) == 2 and "nothing to undo" in told


@pytest.mark.parametrize("last", ["quit", None])
async def test_giving_up_has_no_outcome(last: str | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    episode, told = await play(Notebook(), "3 milk", *([last] if last else []), path=path)
    assert episode is not None and episode.success is None
    assert str(episode.fault) == "left before its end: given up" and len(read_jsonl(path)) == 1
    nothing, told = await play(Notebook(), "quit", path=path)
    assert nothing is None and "nothing was done" in told and len(read_jsonl(path)) == 1


async def test_a_fault_ends_the_game_and_is_recorded() -> None:
    episode, told = await play(Faulty(Notebook(), step=1), "3 milk", "0", "0")
    assert episode is not None and episode.success is None and len(episode.steps) == 2
    assert "injected fault in step" in told


class Hostile(Notebook):
    elements_extra = (
        Element(index=4, role="text", text="[red]\x1b[2J\u202eevil[/red]", value="\x07"),
    )


async def test_texts_of_the_world_cannot_move_the_cursor() -> None:
    _, told = await play(Hostile(), "9", "quit")
    assert "\x1b" not in told and "\u202e" not in told and "\x07" not in told
    assert "[red]�[2J�evil[/red]" in told


async def test_a_phone_task_by_numbers() -> None:
    phone = PhoneEnvironment()
    lines: list[str] = []

    async def read(prompt: str) -> str:
        action = phone.expert()
        lines.append(action.json())
        return lines[-1]

    console = Console(file=io.StringIO(), width=100)
    episode = await play_in_terminal(phone, phone.tasks[0], 3, console=console, read=read)
    assert episode is not None and episode.success is True and len(episode.steps) == len(lines)


def test_the_command_plays_lists_and_refuses(shell: Shell) -> None:  # noqa: F811
    out = shell.folder / "mine.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "swarm_ui", "play", "small_world:Notebook", "write", "--seed", "3",
         "--out", str(out)],
        input="3 milk\n0\n", capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": f"{ROOT / 'tests' / 'support'}:{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "solved in 2 steps" in done.stdout and read_jsonl(out)[0].success is True
    assert shell("play small_world:Notebook").out.split() == ["write", "write-again"]
    for arguments, why in (
        (("nowhere", "t"), "no environment 'nowhere': expected phone, invented, phone-split"),
        (("small_world:Nothing", "t"), "cannot make 'small_world:Nothing'"),
        (("small_world:Notebook", "sing"), "no task 'sing'"),
    ):
        refused = shell("play", *arguments)
        assert refused.code == 2 and why in " ".join(refused.err.split()), refused.err
