"""An option that would have no effect is a mistake, in every command."""

from __future__ import annotations

import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("eval phone --set train.iterations=3", "--set train.iterations: this command does not"),
        ("finetune m c o --set model.device=cuda", "does not read it, only [finetune]"),
        ("synthesize phone --url http://h/v1 -o c", "--url: no role asks a model"),
        ("synthesize phone --set model.name=x -o c", "name the model with --model"),
        ("synthesize phone --devices 3 -o c", "devices = 3 has no effect in 'phone'"),
        ("synthesize phone --set environment.max_steps=3 -o c", "--set synthesize.max_steps=3"),
        ("eval invented --split blind --devices 4", "devices = 4 has no effect on split 'blind'"),
        ("play phone contacts-add --port 8000", "only a web page has one; add --browser"),
        ("export r mermaid --solved", "--solved: chooses episodes or pairs, not mermaid"),
        ("export r episodes --prompt-format json", "rewrites pairs, not episodes"),
    ],
)
def test_an_option_without_effect_is_a_mistake(shell: Shell, line: str, told: str) -> None:  # noqa: F811
    pytest.importorskip("torch")
    before = sorted(shell.folder.rglob("*"))
    done = shell(line)
    assert done.code == 2 and told in done.err, done.err
    assert sorted(shell.folder.rglob("*")) == before


def test_a_resumed_run_is_not_played_somewhere_else_than_asked(shell: Shell) -> None:  # noqa: F811
    assert shell(f"eval {LAMP} -n 1 --model script:right.txt --out r").code == 0
    resumed = "eval --resume r --trust"
    assert "expected local, ray or ray:HOST:PORT" in shell(f"{resumed} --on rya").err
    assert "workers = 2 has no effect without" in shell(f"{resumed} --workers 2").err
    assert shell(resumed).code == 0
