"""``train --on ray`` leaves what ``train`` leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import Shell, shell  # noqa: F401
from local_ray import local_ray
from sent_rollouts import figures

pytest.importorskip("torch")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1800)]

_SMALL = (
    "train phone --iterations 2 --rollouts 4 --agents 2 --rounds 1 --max-steps 3 "
    "--set train.shared_iterations=1 --set train.shared_steps=2 --set train.update.steps=2 "
    "--set train.rank=2 --set run.report=false"
)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_ray(cpus=4):
        yield


def left(folder: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The metrics without times, and the weights of the adapters."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    weights = {path.parent.name: path.read_bytes()
               for path in folder.glob("adapters/*/adapter_model.safetensors")}  # fmt: skip
    return figures([json.loads(line) for line in lines]), weights


def test_workers_leave_what_this_process_leaves(shell: Shell) -> None:  # noqa: F811
    for folder, options in (("here", ""), ("there", "--on ray --workers 2")):
        done = shell(f"{_SMALL} {options} --out {folder} --json")
        assert done.code == 0, done.err
    here, there = left(shell.folder / "here"), left(shell.folder / "there")
    assert here == there and len(here[1]) == 2

    resumed = shell("train --resume there --on local --json")  # it is finished
    assert resumed.code == 0, resumed.err
    assert left(shell.folder / "there") == here
    done = shell(
        f"{_SMALL} --on ray --workers 2 --set ray.shared_folder=true --set train.staleness=1 "
        "--out ahead --json"
    )
    assert done.code == 0, done.err
    lines, _ = left(shell.folder / "ahead")
    assert [line["staleness"] for line in lines if line["kind"] == "iteration"] == [0, 1]
    assert not (shell.folder / "ahead" / "published").exists()
