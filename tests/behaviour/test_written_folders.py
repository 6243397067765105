"""What commands write in a run's folder and beside it: through no link, and whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cli_world import Shell

pytest.importorskip("peft")

from learning_fakes import TinyModel
from learning_run import CONFIG, run

from swarm_ui import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore:iteration .* no adapter was trained")
"""So few episodes hold nothing to learn."""
_PLAYED = "eval phone -n 2 -m script:right.txt"
_TRAINED = (
    "train phone --iterations 2 --rollouts 1 --agents 2 --rounds 1 env.max_steps=1 "
    "--critic outcome train.rank=2 train.shared_iterations=0 train.update.steps=1"
)
_SOON = (".run.lock", ".episodes.lock", ".training.lock", "checkpoints/adapters",
         "edges/edges.json", "adapters", "agent", "wandb")  # fmt: skip
"""Places that a run may write to and that are not in the folder of every run."""


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def one_line(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
    return line


@contextmanager
def linked(folder: Path, place: str, outside: Path, *, kept: bool = True) -> Iterator[None]:
    """A file or folder of the folder, moved to another folder; only a link to it is left."""
    inner, moved = folder / place, outside / "moved"
    inner.parent.mkdir(parents=True, exist_ok=True)
    there = inner.exists()
    if there:
        inner.rename(moved)
    elif kept:
        moved.write_text("of the user, and without a line break", encoding="utf-8")
    inner.symlink_to(moved)
    try:
        yield
    finally:
        inner.unlink(missing_ok=True)
        if there:
            moved.rename(inner)
        else:
            moved.unlink(missing_ok=True)


def expect_refused(shell: Shell, line: str, folder: Path, place: str) -> None:
    outside = shell.folder / "outside"
    outside.mkdir(exist_ok=True)
    for kept in (True, False)[: 1 if (folder / place).exists() else 2]:
        with linked(folder, place, outside, kept=kept):
            before = contents(outside)
            done = shell(line)
            assert contents(outside) == before, place
            assert done.code == 2, (place, done)
            assert str(folder.relative_to(shell.folder) / place) in one_line(done.err)


def places(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*"))]


@pytest.mark.parametrize(
    "line",
    [pytest.param(_PLAYED, id="eval"), pytest.param(_TRAINED, id="train", marks=pytest.mark.slow)],
)
def test_a_continued_run_writes_through_no_link(shell: Shell, line: str) -> None:
    assert shell(f"{line} --out r").code in (0, 5)
    folder, again = shell.folder / "r", f"{line.split()[0]} --resume r"
    found = places(folder)
    assert {"traces", "report.html", "status.json", "progress.json"} & {*found}
    for place in dict.fromkeys([*found, *_SOON]):
        if place != "config.json":  # read before anything is written
            expect_refused(shell, again, folder, place)
    (folder / "wandb").mkdir()
    (folder / "wandb/latest").symlink_to("../traces")  # as loggers make them
    assert shell(again).code in (0, 5)


def test_a_corpus_is_continued_through_no_link(shell: Shell) -> None:
    line = "synthesize phone -n 1 synthesize.levels=[1] -o c"
    assert shell(line).code == 0
    for place in dict.fromkeys([*places(shell.folder / "c"), "calls.jsonl", "journal.jsonl"]):
        expect_refused(shell, line, shell.folder / "c", place)


def test_a_fine_tuning_and_a_critic_write_through_no_link(shell: Shell) -> None:
    pytest.importorskip("trl")
    from corpus_fakes import tiny_llama

    tiny_llama(shell.folder / "tiny")
    assert shell("synthesize phone -n 1 synthesize.levels=[1] -o c").code == 0
    (shell.folder / "f").mkdir()
    for place in ("level1", "judged/1-phone-train.jsonl"):
        expect_refused(shell, "finetune tiny c f", shell.folder / "f", place)
        expect_refused(shell, "critic tiny phone f --episodes 1", shell.folder / "f", place)


# -- checkpoints -------------------------------------------------------------------------------

_FEW = replace(CONFIG, episodes=2, shared_iterations=0, update=replace(CONFIG.update, steps=1))


def test_a_training_in_python_writes_through_no_link(tmp_path: Path) -> None:
    run(TinyModel(), tmp_path / "t", config=replace(_FEW, iterations=1))
    for place in ("metrics.jsonl", "checkpoints", ".training.lock"):
        with linked(tmp_path / "t", place, tmp_path):
            before = contents(tmp_path)
            with pytest.raises(ConfigError, match=place):
                run(TinyModel(), tmp_path / "t", config=replace(_FEW, iterations=1), resume=True)
            assert contents(tmp_path) == before


def test_a_linked_checkpoint_is_an_ordinary_error(tmp_path: Path) -> None:
    run(TinyModel(), tmp_path, config=_FEW)
    checkpoints = tmp_path / "checkpoints"
    shutil.rmtree(checkpoints / "iteration-0003")
    (checkpoints / "iteration-0001").symlink_to("iteration-0002")
    with pytest.raises(ConfigError, match="iteration-0001"):
        run(TinyModel(), tmp_path, config=_FEW, resume=True)


# -- export ------------------------------------------------------------------------------------


def team(shell: Shell, folder: str, agents: int, weight: str) -> None:
    """A run with adapters, of which an export reads only the names."""
    if not (shell.folder / folder).exists():
        assert shell(f"{_PLAYED} --out {folder}").code == 0
    for k in range(agents):
        adapter = shell.folder / folder / "adapters" / f"agent_{k}"
        adapter.mkdir(parents=True)
        (adapter / "adapter_config.json").write_text("{}", encoding="utf-8")
        (adapter / "adapter_model.safetensors").write_text(weight * 9000, encoding="utf-8")


def test_an_export_replaces_the_whole_team(shell: Shell) -> None:
    team(shell, "four", 4, "4")
    team(shell, "two", 2, "2")
    assert shell("export four adapters -o out").code == 0
    assert shell("export two adapters -o out --force --json").json["adapters"] == [
        "agent_0", "agent_1"
    ]  # fmt: skip
    assert contents(shell.folder / "out") == contents(shell.folder / "two/adapters")


def test_an_export_without_room_keeps_the_old_team(shell: Shell) -> None:
    resource = pytest.importorskip("resource")
    team(shell, "four", 4, "4")
    team(shell, "two", 2, "2")
    assert shell("export four adapters -o out").code == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))  # a write beyond it fails
    try:
        done = shell("export two adapters -o out --force")
        fresh = shell("export two adapters -o new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.code == fresh.code == 2 and "'out'" in one_line(done.err)
    assert contents(shell.folder / "out") == contents(shell.folder / "four/adapters")
    assert not (shell.folder / "new").exists()


def test_an_export_replaces_no_folder_of_other_files(shell: Shell) -> None:
    team(shell, "two", 2, "2")
    (shell.folder / "mine").mkdir()
    (shell.folder / "mine/notes.txt").write_text("mine", encoding="utf-8")
    done = shell("export two adapters -o mine --force")
    assert done.code == 2 and "'mine'" in one_line(done.err)
    assert contents(shell.folder / "mine") == {"notes.txt": b"mine"}
