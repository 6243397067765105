"""The command line does what it is told, or says why not."""

from __future__ import annotations

import gc
import json
import shlex
import tracemalloc
from typing import Any

import pytest
from cli_world import LAMP, Done, Shell

from swarm_ui import read_jsonl

TRAIN = "train phone --iterations 0 --agents 2 env.max_steps=2 run.report=false"
"""A training that ends before its first episode."""


def trained(shell: Shell, out: str, settings: str = "") -> Done:
    """A training in the folder ``out``."""
    pytest.importorskip("torch")
    done = shell(f"{TRAIN} --out {out} {settings}")
    assert done.code == 0, done.err
    return done


def settings_of(shell: Shell, run: str) -> dict[str, Any]:
    """The settings of a run, by section."""
    found: dict[str, Any] = json.loads((shell.folder / run / "config.json").read_bytes())
    return found.get("config", found)


# -- the printed "next" command -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "edges"),
    [
        ("--rounds 2 team.vote=probability env.wrap=action-filter", None),
        ("--edges chain", [("agent_0", "agent_1")]),
        ("--edges none", []),
        ("--learn-edges learned", None),
    ],
)
def test_the_next_command_tests_the_team_as_it_was_trained(
    shell: Shell, settings: str, edges: list[tuple[str, str]] | None
) -> None:
    done = trained(shell, "t", settings)
    (told,) = [line for line in done.err.splitlines() if line.startswith("next: ")]
    words = shlex.split(told.removeprefix("next: swarm-ui "))
    tested = shell("", *words, "-n", "1")
    assert tested.code in (0, 1), tested.err  # one episode may be failed
    (episode,) = read_jsonl(shell.folder / "t/traces/parameters.jsonl")
    trace = episode.steps[0].trace
    assert len(episode.steps) <= 2 and len(trace.agents) == 2
    assert trace.rounds == (2 if "--rounds" in settings else 3)
    spoken = [call for call in trace.calls if call.node in trace.agents]
    assert {call.adapter for call in spoken} == {"agent_0@0", "agent_1@0"}
    assert not any(call.temperature for call in spoken)
    if edges is not None:
        assert [edge for edge in trace.edges if set(edge) <= {*trace.agents}] == edges


def test_the_next_command_after_a_training_in_code_of_ones_own_trusts_it(shell: Shell) -> None:
    pytest.importorskip("torch")
    done = shell(f"train {LAMP} --iterations 0 --agents 2 run.report=false --out t")
    assert done.code == 0, done.err
    (told,) = [line for line in done.err.splitlines() if line.startswith("next: ")]
    words = shlex.split(told.removeprefix("next: swarm-ui "))
    assert shell("", *words).code in (0, 1)
    assert shell("eval t").code == 2


# -- settings of a run that is continued ----------------------------------------------------------


EVALUATION = f"eval {LAMP} --model script:right.txt run.report=false"


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        (TRAIN, "place.concurrency=2 eval.fail_under=0.5 eval.max_masked=0.5 model.timeout=5 "
                "critic.model.key_env=KEY place.workers=2"),
        (EVALUATION, "model.rate_limit=5 model.actor.url=http://127.0.0.1:9/v1 place.workers=2 "
                     "model.device=cuda"),
    ],
    ids=["train", "eval"],
)  # fmt: skip
def test_a_run_is_not_continued_with_a_setting_that_it_ignores(
    shell: Shell, line: str, ignored: str
) -> None:
    pytest.importorskip("torch")
    assert shell(f"{line} --out r").code == 0
    before = settings_of(shell, "r")
    for given in ignored.split():
        done = shell(f"{line.split()[0]} --resume r --trust {given}")
        assert done.code == 2
        assert given.partition("=")[0].rpartition(".")[0] in done.err
        assert shell(f"{line} --out other {given}").code == 2, "as a new run refuses it"
    assert settings_of(shell, "r") == before


def test_an_evaluation_is_continued_with_the_settings_that_it_uses(shell: Shell) -> None:
    line = f"eval {LAMP} --model script:wrong.txt run.report=false"
    assert shell(f"{line} --out e").code == 0
    assert shell("eval --resume e --trust --concurrency 2 eval.max_masked=0.5").code == 0
    assert shell("eval --resume e --trust --fail-under 0.5").code == 1


# -- the state of a run ---------------------------------------------------------------------------


def interrupted(shell: Shell, split: str, done: int, of: int) -> Done:
    """``status`` of an evaluation of which the first ``done`` episodes ended."""
    line = f"eval phone --split {split} -n {of} --model script:right.txt env.max_steps=1"
    assert shell(f"{line} run.report=false --out e").code == 0
    for written_at_the_end in ("results.json", "status.json"):
        (shell.folder / "e" / written_at_the_end).unlink()
    (trace,) = (shell.folder / "e/traces").iterdir()
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:done]))
    return shell("runs e --json")


def test_the_training_tasks_are_evaluated_like_any_other_split(shell: Shell) -> None:
    (found,) = interrupted(shell, "train", 15, of=20).json["sets"]
    assert (found["name"], found["done"], found["total"]) == ("train", 15, 20)
    assert found["success"]["n"] == 15


def test_a_training_shows_no_success_of_the_episodes_that_it_keeps(shell: Shell) -> None:
    interrupted(shell, "train", 15, of=20)
    path = shell.folder / "e/config.json"
    document = json.loads(path.read_bytes())
    document["config"]["command"] = "train"
    path.write_text(json.dumps(document), encoding="utf-8")
    (found,) = shell("runs e --json").json["sets"]
    assert (found["done"], found["success"]) == (15, None)


def test_the_first_episodes_to_end_are_no_success_rate(shell: Shell) -> None:
    (found,) = interrupted(shell, "parameters", 2, of=30).json["sets"]
    assert (found["done"], found["total"], found["success"]) == (2, 30, None)
    assert "end first" in " ".join(shell("runs e").out.split())
    trace = shell.folder / "e/traces/parameters.jsonl"
    trace.write_bytes(trace.read_bytes() * 2)
    (found,) = shell("runs e --json").json["sets"]
    assert found["success"]["n"] == 4
    assert "end first" in " ".join(shell("runs e").out.split())


# -- large runs -----------------------------------------------------------------------------------

LETTERS = 20_000
"""Length of a text on the screen of each episode of a large run."""


def large_run(shell: Shell, out: str, episodes: int) -> None:
    """A run with this many episodes of more than :data:`LETTERS` bytes."""
    line = f"eval {LAMP} -n 2 --model script:wrong.txt run.report=false"
    assert shell(f"{line} --out {out}").code == 0
    (trace,) = (shell.folder / out / "traces").iterdir()
    one = json.loads(trace.read_bytes().splitlines()[0])
    one["episode"]["steps"][0]["trace"]["observation"]["elements"][0]["text"] = "a" * LETTERS
    with trace.open("w", encoding="utf-8") as file:
        for seed in range(episodes):
            one["episode"]["seed"] = seed
            file.write(json.dumps(one, separators=(",", ":")) + "\n")


def most_memory(shell: Shell, line: str) -> int:
    """Bytes that a command needs at most; it has run once before."""
    assert shell(line).code == 0
    gc.collect()
    tracemalloc.start()
    try:
        assert shell(line).code == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "line",
    [
        "export {} episodes --out x.jsonl --force",
        "view --no-open {} --out x.html",
        pytest.param(
            "view --no-open {}/traces/episodes.jsonl --out x.html", marks=pytest.mark.slow
        ),
    ],
)
def test_the_memory_of_a_command_does_not_grow_with_the_run(shell: Shell, line: str) -> None:
    large_run(shell, "few", 50)
    large_run(shell, "many", 200)
    few, many = (most_memory(shell, line.format(run)) for run in ("few", "many"))
    assert many - few < 50 * LETTERS, "a third of what the run has more"


def test_episodes_are_exported_as_they_were_recorded(shell: Shell) -> None:
    assert shell(f"eval {LAMP} -n 4 --model script:mixed.txt --out e").code == 0
    recorded = (shell.folder / "e/traces/episodes.jsonl").read_text(encoding="utf-8")
    assert shell("export e episodes").out == recorded
    assert shell("export e episodes --json").json["text"] == recorded
    assert shell("export e episodes --out new/x.jsonl --json").json["lines"] == 4
    assert (shell.folder / "new/x.jsonl").read_text(encoding="utf-8") == recorded
    solved = shell("export e episodes --solved").out.splitlines()
    assert len(solved) == 2 and all(line in recorded for line in solved)
