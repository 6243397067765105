"""``run``, ``eval`` and ``compare``: what is played, saved, counted, and how it ends."""

from __future__ import annotations

import errno
import json
import os

import pytest
from cli_world import BROKEN, LAMP, RIGHT, SLOW, Shell
from interrupts import interrupted, started, wait_for, written
from loopback import Loopback, Reply, in_a_thread
from mind2web_samples import record, task

from swarm_ui.trace.jsonl import read_jsonl


def test_one_task_exits_with_what_came_of_it(shell: Shell) -> None:
    won = shell(f"eval {LAMP} light --model script:right.txt --out won --json")
    assert won.code == 0 and won.json["success"]["mean"] == 1.0
    lost = shell(f"eval {LAMP} light --model script:wrong.txt --out lost")
    assert lost.code == 1 and "0/1" in lost.out
    assert "swarm-ui view lost" in lost.err
    assert "not empty" in shell(f"eval {LAMP} light --model script:right.txt --out lost").err


def test_a_suite_is_saved_with_a_report(shell: Shell) -> None:
    done = shell(f"eval {LAMP} -n 6 --model script:mixed.txt -j 1 --out r --json")
    assert done.code == 0 and done.json["plans"][0]["solved"] == 3
    episodes = read_jsonl(shell.folder / "r/traces/episodes.jsonl")
    assert len(episodes) == 6 and {e.task for e in episodes} == {"light", "glow"}
    assert "3 of 6 tested episodes were solved" in (shell.folder / "r/report.html").read_text(
        encoding="utf-8"
    )
    assert done.out.count("\n") == 1


def test_a_full_disk_is_one_line_and_the_rest_is_played_later(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, 3

    def writing(descriptor: int, data: bytes) -> int:
        nonlocal room
        if bytes(data[:11]) == b'{"version":':
            room -= bytes(data).count(b"\n")
            if room < 0:
                write(descriptor, data[:50])
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", writing)
        line = f"eval {LAMP} -n 12 --model script:right.txt -j 1 --out r"
        done = shell(f"{line} run.report=false --quiet")
    assert done.code == 2
    assert "the run 'r' cannot be written: [Errno 28] No space left on device" in done.err
    assert "Traceback" not in done.err
    assert len(read_jsonl(shell.folder / "r/traces/episodes.jsonl")) <= 3
    done = shell("eval --resume r --trust --json")
    assert done.code == 0 and done.json["plans"][0]["solved"] == 12
    assert len(read_jsonl(shell.folder / "r/traces/episodes.jsonl")) == 12


def test_faults_are_masked_and_never_a_success_of_0(shell: Shell) -> None:
    done = shell(f"eval {BROKEN} -n 2 --model script:right.txt --out r --json")
    assert done.code == 3
    assert done.json["success"] is None and done.json["plans"][0]["masked"] == 2
    assert "the bulb is gone" in done.err


def test_a_model_that_says_nothing_useful_is_the_models_fault(shell: Shell) -> None:
    done = shell(f"eval {LAMP} -m x --url http://127.0.0.1:9/v1 --out r --json")
    assert done.code == 4 and done.json["error"] == "ModelUnavailable"
    assert not (shell.folder / "r").exists()


def test_eval_measures_splits_and_seeds(shell: Shell) -> None:
    line = "eval phone -n 2 env.max_steps=1 --model script:wrong.txt --split apps --split templates"
    done = shell(f"{line} --seed 0 --seed 1 --out r --json")
    assert done.code == 0
    assert [plan["name"] for plan in done.json["plans"]] == [
        "apps-seed0", "apps-seed1", "templates-seed0", "templates-seed1",
    ]  # fmt: skip
    assert done.json["splits"]["apps"]["success"]["n"] == 4
    assert done.json["splits"]["apps"]["over_seeds"]["n"] == 2
    one, two = (shell.folder / f"r/traces/apps-seed{k}.jsonl" for k in (0, 1))
    assert [e.seed for e in read_jsonl(one)] != [e.seed for e in read_jsonl(two)]


def test_eval_says_why_episodes_failed(shell: Shell) -> None:
    line = "eval phone -n 3 env.max_steps=1 --split apps --split templates"
    found = shell(f"{line} --model script:wrong.txt --out r --json").json["failures"]
    assert sum(count for splits in found.values() for count in splits.values()) == 6
    assert [*found] == ["other"]
    assert "other" in shell("eval --resume r").out
    assert "Why episodes failed" in (shell.folder / "r/report.html").read_text(encoding="utf-8")


def test_runs_are_compared_episode_by_episode(shell: Shell) -> None:
    shell(f"eval {LAMP} -n 4 --model script:wrong.txt --out b")
    shell(f"eval {LAMP} -n 4 --model script:right.txt --out a")
    (row,) = shell("compare a b --json").json["rows"]
    assert row["difference"]["mean"] == 1.0 and (row["better"], row["worse"]) == (4, 0)
    table = shell("compare a b")
    assert table.code == 0 and "+100.0" in table.out
    assert shell("compare b a --json").json["rows"][0]["difference"]["mean"] == -1.0
    files = shell("compare a/traces/episodes.jsonl b/traces/episodes.jsonl --json").json
    assert files["rows"][0]["difference"] == row["difference"]
    shell("eval phone -n 1 env.max_steps=1 --model script:wrong.txt --out c")
    none = shell("compare a c")
    assert none.code == 2 and "no episode in common" in none.err
    assert "there is no folder 'nowhere'" in shell("compare a nowhere").err


def test_measures_of_the_benchmark_stand_beside_success(shell: Shell) -> None:
    folder = shell.folder / "data/test_task"
    folder.mkdir(parents=True)
    click, typed = record("CLICK", "", [3], [1]), record("TYPE", "hello", [2], [1], tag="input")
    tasks = [task(f"t{k}", [click, typed]) for k in range(2)]
    (folder / "test_task_0.json").write_text(json.dumps(tasks), encoding="utf-8")
    done = shell("eval mind2web env.data=data --model script:right.txt --out r")
    assert done.code == 0, done.err
    assert "element accuracy (macro)" in done.out
    again = shell("eval --resume r --trust --json")
    (plan,) = again.json["plans"]
    assert plan["split"] == "test_task"
    found = {measure["name"]: measure["value"] for measure in plan["measures"]}
    # Both steps are answered by a click on the element at index 0: n1, which is never right.
    assert found["step success (macro)"] == 0.0
    assert found["operation F1 (macro)"] == 0.5
    assert "operation F1 (macro)" in (shell.folder / "r/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("run", {"log": ["wandb"]}, "send settings and metrics to wandb"),
        ("env", {"wrap": ["os:abort"]}, "import and call 'os:abort' (a wrapper)"),
        ("model", {"kind": "local", "name": "some-org/some-model"},
         "download 'some-org/some-model' from the Hugging Face Hub"),
    ],
)  # fmt: skip
def test_a_strangers_folder_needs_consent(
    shell: Shell, section: str, change: dict[str, object], said: str
) -> None:
    assert shell(f"eval {LAMP} light --model script:right.txt --out r").code == 0
    path = shell.folder / "r/config.json"
    document = json.loads(path.read_text())
    document["config"][section] |= change
    path.write_text(json.dumps(document))
    done = shell("eval --resume r")
    assert done.code == 2 and said in " ".join(done.err.split()), done.err


def test_an_endpoint_plays_and_its_budget_ends_the_run(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with in_a_thread(Loopback([Reply(RIGHT)] * 3)) as server:
        line = f"eval {LAMP} -n 6 -j 1 --model tiny --url {server.url} model.max_calls=3 --out r"
        done = shell(f"{line} --json")
    assert done.code == done.json["exit"] == 4, done.err
    assert len(read_jsonl(shell.folder / "r/traces/episodes.jsonl")) >= 3
    assert done.json["resume"] == "swarm-ui eval --resume r --trust"
    assert "sk-very-secret" not in done.out + done.err
    written = "".join(p.read_text(encoding="utf-8") for p in shell.folder.rglob("*.json"))
    assert "sk-very-secret" not in written


def test_ctrl_c_saves_what_there_is_and_a_resumed_run_plays_the_rest(shell: Shell) -> None:
    words = ["eval", SLOW, "-n", "8", "-j", "1", "--model", "script:right.txt", "--out", "r"]
    process = started(*words, LAMP_SECONDS="0.3")
    path = shell.folder / "r/traces/episodes.jsonl"
    wait_for(process, lambda: written(path) >= 2)
    assert "continue with: swarm-ui eval --resume r" in interrupted(process)
    saved = read_jsonl(path)
    assert 2 <= len(saved) < 8
    done = shell("eval --resume r --trust --json")
    assert done.code == 0 and done.json["plans"][0]["episodes"] == 8
    assert read_jsonl(path)[: len(saved)] == saved
    assert "not a run of: swarm-ui train" in shell("train --resume r").err


def test_a_run_that_goes_on_measures_what_it_was_set_up_to(shell: Shell) -> None:
    shell(f"eval {LAMP} -n 4 --model script:right.txt --out r")
    path = shell.folder / "r/traces/episodes.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    for more, place in (
        ("-a 3", "team.agents"),
        ("team.rounds=2", "team.rounds"),
        ("--seed 4", "eval.seed"),
        ("--config x.toml", "--config"),
    ):
        done = shell(f"eval --resume r {more}")
        said = f"{place}: cannot be changed in a run that has begun"
        assert done.code == 2 and said in done.err, done.err
    left = shell("eval --resume r --trust --dry-run --json")
    assert left.json["of these done"] == "1" and path.read_bytes().count(b"\n") == 1
    done = shell("eval --resume r --trust -j 1 --fail-under 1.0 --json")
    assert done.code == 0 and done.json["plans"][0]["solved"] == 4
    assert shell("eval --resume r model.max_calls=0").code == 2


def test_a_dry_run_leaves_a_cut_off_line_as_it_is(shell: Shell) -> None:
    shell(f"eval {LAMP} -n 4 --model script:right.txt --out r")
    path = shell.folder / "r/traces/episodes.jsonl"
    cut = path.read_bytes()[:-9]  # as while another process writes it
    path.write_bytes(cut)
    left = shell("eval --resume r --trust --dry-run --json")
    assert left.code == 0, left.err
    assert left.json["of these done"] == "3" and path.read_bytes() == cut
    assert shell("eval --resume r --trust --json").json["plans"][0]["solved"] == 4


def test_ctrl_c_while_a_model_is_loaded(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("swarm_ui.cli.outcome.load_in_process", loaded)
    done = shell("eval phone contacts-add --out r --json")
    assert done.code == 130 and done.json["resume"] == "swarm-ui eval --resume r"
