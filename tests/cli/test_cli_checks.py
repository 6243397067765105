"""What is wrong is found before anything is written, by a dry run too; no folder is left behind."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import LAMP, Shell

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment import Run

RIGHT = f"eval {LAMP} light --model script:right.txt"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{RIGHT} -a 2 --edges agent_0>agent_1,agent_1>agent_0",
         "--edges: the edges form a cycle: agent_0 -> agent_1 -> agent_0"),
        (f"{RIGHT} -a 2 --edges agent_0>agent_0", "--edges: the edges form a cycle"),
        (f"{RIGHT} -a 2 --edges agent_0>agent_1,agent_0>agent_1", "is given twice"),
        (f"{RIGHT} -a 2 --edges agent_0>agent_7", "no agent_7; the team has agent_0, agent_1"),
        (f"{RIGHT} -a 1 --edges ring", "--edges: 'ring' is not SENDER>LISTENER"),
        (f"{RIGHT} -a 1 --edges agent_5>agent_6", "there is no agent_5 and no agent_6; the team"),
        (f"eval {LAMP} --model script:none.txt", "--model: cannot read the script 'none.txt'"),
        (f"eval {LAMP} --model script:none.jsonl", "--model: none.jsonl: cannot be opened"),
        (f"{RIGHT} -n 0", "greater than or equal to 1"),
        ("eval phone --model script:right.txt -n 0", "greater than or equal to 1"),
        (f"eval {LAMP} ligth --model script:right.txt", "no task 'ligth'; did you mean 'light'?"),
        ("train phone --model script:right.txt", "'script:right.txt' cannot be trained"),
        ("train phone -a 2 --edges agent_0>agent_1,agent_1>agent_0", "form a cycle"),
        (f"train {LAMP} ligth", "no task 'ligth'; did you mean 'light'?"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_is_written(shell: Shell, line: str, said: str) -> None:
    for words in (f"{line} --dry-run", line, f"{line} --out r"):
        done = shell(words)
        assert done.code == 2 and said in " ".join(done.err.split()), (words, done.err)
    assert not (shell.folder / "runs").exists() and not (shell.folder / "r").exists()


def test_one_agent_may_have_a_shape_in_its_settings(shell: Shell) -> None:
    for shape in ("random", "chain", "star", "tree"):
        assert shell(f"{RIGHT} -a 1 --edges {shape} --dry-run").code == 0


def failing(error: SwarmError) -> Any:
    def evaluate(run: Run, **_: object) -> None:
        raise error

    return evaluate


def test_a_failed_start_leaves_no_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell(f"{RIGHT} --out kept").code == 0
    monkeypatch.setattr(
        "swarm_ui.cli.act.evaluate_run", failing(ConfigError("the weights do not fit"))
    )
    for more in ("", "--out r"):
        done = shell(f"{RIGHT} {more}")
        assert done.code == 2 and "the weights do not fit" in done.err
        assert not (shell.folder / "runs").exists() and not (shell.folder / "r").exists()
    (shell.folder / "runs" / "other").mkdir(parents=True)
    assert shell(RIGHT).code == 2
    assert [path.name for path in (shell.folder / "runs").iterdir()] == ["other"]
    assert shell("eval --resume kept --trust").code == 2
    assert (shell.folder / "kept/traces/episodes.jsonl").exists()


def test_what_was_written_is_kept(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(run: Run, **_: object) -> None:
        run.folder.write_episodes("episodes", [])
        raise ConfigError("late")

    monkeypatch.setattr("swarm_ui.cli.act.evaluate_run", evaluate)
    assert shell(f"{RIGHT} --out r").code == 2
    assert (shell.folder / "r/config.json").exists()


def test_learned_edges_that_deliver_later_are_not_played_at_once(shell: Shell) -> None:
    pytest.importorskip("torch")
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    back, forth = ("agent_1", "agent_0"), ("agent_0", "agent_1")
    learned = EdgeDistribution(
        ["agent_0", "agent_1"], candidates=[back, forth], delays={back: 1}, density=0.9
    )
    (shell.folder / "learned" / "edges").mkdir(parents=True)
    learned.save(shell.folder / "learned" / "edges" / "distribution.safetensors")
    done = shell(f"{RIGHT} -a 2 -r 2 --edges learned --out r")
    assert done.code == 2 and "agent_1 -> agent_0 with a delay" in done.err, done.err
    assert not (shell.folder / "r").exists()
