"""The files and commands of docs/howto/cluster.md: read by Ray's own code, and run on two nodes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cli_world import Shell
from doc_blocks import ALL, commands

from swarm_ui.experiment.stored import snapshot
from swarm_ui.trace.jsonl import read_jsonl

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs/howto"
PAGE, SLURM, MANIFEST = (HOWTO / n for n in ("cluster.md", "ray_slurm.sh", "rayjob.yaml"))
PLACE = "docs/howto/cluster.md"


def page_commands(program: str) -> list[list[str]]:
    """The commands of a program on the page."""
    blocks = [block.text for block in ALL if block.document == PLACE and block.language == "sh"]
    return [words for text in blocks for words in commands(text) if words[0] == program]


def slurm_commands(program: str) -> list[list[str]]:
    """The commands of a program in the Slurm script, whatever starts them."""
    text = re.sub(r"\$\{[^}]*\}|\$\(\([^)]*\)\)", "1", SLURM.read_text(encoding="utf-8"))
    found = []
    for words in commands(text):
        if program in words:
            line = words[words.index(program) :]
            ends = [k for k, word in enumerate(line) if ">" in word]
            found.append(line[: ends[0]] if ends else line)
    return found


def manifest() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    found: dict[str, Any] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return found


def job_commands() -> list[list[str]]:
    """The commands of ours in the entrypoint of the manifest."""
    found = commands(manifest()["spec"]["entrypoint"])
    return [words for words in found if words[0] == "swarm-ui"]


# -- read, without a cluster ------------------------------------------------------------------


def test_every_ray_command_is_one_that_ray_knows() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.scripts.scripts import cli

    found = [*page_commands("ray"), *slurm_commands("ray")]
    assert sum(words[1] == "start" for words in found) == 5
    for words in found:
        command = cli.commands[words[1]]
        command.make_context(words[1], words[2:])  # raises for options that it does not know


def test_the_autoscaler_of_ray_reads_the_manifest() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.autoscaler._private.kuberay.autoscaling_config import (
        _derive_autoscaling_config_from_ray_cr,
    )
    from ray.scripts.scripts import start

    document = manifest()
    assert (document["apiVersion"], document["kind"]) == ("ray.io/v1", "RayJob")
    cluster = document["spec"]["rayClusterSpec"]
    metadata = {"name": "swarm-eval", "namespace": "default"}
    config = _derive_autoscaling_config_from_ray_cr({"metadata": metadata, "spec": cluster})
    types = config["available_node_types"]
    assert types["headgroup"]["resources"]["CPU"] == 0, "no episodes on the head"
    players = types["players"]
    assert players["resources"]["CPU"] == 8 and players["min_workers"] == 4
    assert cluster["rayVersion"] == version("ray")
    known = {name.lstrip("-") for option in start.params for name in option.opts}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        assert set(group["rayStartParams"]) <= known
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        (container,) = group["template"]["spec"]["containers"]
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        assert mounts == {volume["name"] for volume in group["template"]["spec"]["volumes"]}
    assert f"ray:{version('ray')}" in PAGE.read_text(encoding="utf-8"), "the image on the page"


def test_our_commands_are_checked_by_their_dry_run(shell: Shell) -> None:
    begun = [words for words in (*job_commands(), *slurm_commands("swarm-ui"))
             if "--resume" not in words]  # fmt: skip
    assert len(begun) == 2
    for words in begun:
        line = ["runs/new" if word.startswith(("/runs", "runs/")) else word for word in words[1:]]
        line = ["ray:head:6379" if word.startswith("ray:") else word for word in line]
        if "--url" in line:
            line[line.index("--url") + 1] = "http://localhost:9/v1"
        done = shell("", *line, "--dry-run", "--json")
        assert done.code == 0, done.err
        assert done.json["episodes: parameters"] == "1000" and done.json["dry_run"] is True


def test_the_script_is_one_that_bash_reads() -> None:
    subprocess.run(["bash", "-n", str(SLURM)], check=True)
    assert os.access(SLURM, os.X_OK)


# -- run, with two nodes on this machine ------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder of its own, a folder for Ray's files, and our commands on the path."""
    pytest.importorskip("ray", reason="Ray is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, code in (("swarm-ui", "-m swarm_ui"), ("ray", "-m ray.scripts.scripts")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "home").mkdir()
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        for name, value in {
            "HOME": str(tmp_path / "home"), "RAY_TMPDIR": folder, "PYTHONPATH": str(ROOT),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
            "RAY_memory_monitor_refresh_ms": "0", "RAY_agent_register_timeout_ms": "240000",
            "RAY_AUTH_MODE": "token",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        monkeypatch.chdir(tmp_path)
        yield tmp_path


def address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process, which is ended with all that it started."""
    process = subprocess.Popen(words, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        with suppress(ProcessLookupError):  # it has ended, and a failure of the test is to be seen
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def wait_until(ready: Callable[[], bool], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.5)


def status(place: str) -> str:
    done = subprocess.run(
        ["ray", "status", f"--address={place}"], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_machines_from_zero(world: Path) -> None:
    """The commands of the page. Both nodes are on this machine, at different ports."""
    port, host = free_port(), address()
    script = world / "right.txt"
    script.write_text('{"action_type": "wait"}\n', encoding="utf-8")

    def here(words: list[str]) -> list[str]:
        line = [word.replace("10.0.0.5", host).replace("6379", str(port)) for word in words]
        return [word.replace("--num-cpus=8", "--num-cpus=2") for word in line]

    token, head, other, asked = (here(words) for words in page_commands("ray")[:4])
    evaluation, seen = (here(words) for words in page_commands("swarm-ui")[:2])
    subprocess.run(token, check=True, stdout=subprocess.DEVNULL)
    assert (world / "home/.ray/auth_token").is_file()
    with ExitStack() as stack:
        stack.enter_context(started([*head, "--block", "--include-dashboard=false"]))
        wait_until(lambda: bool(status(f"{host}:{port}")))
        stack.enter_context(started([*other, "--block"]))
        wait_until(lambda: status(f"{host}:{port}").count(" node_") == 2)
        assert "0.0/4.0 CPU" in subprocess.run(asked, capture_output=True, text=True).stdout
        few = ["-n", "12", "--model", f"script:{script}", "env.max_steps=2", "--quiet"]
        at = evaluation.index("-n")
        line = [*evaluation[:at], *few, "--on", *evaluation[evaluation.index("--on") + 1 :]]
        subprocess.run(line, check=True, timeout=500)
        told = subprocess.run(seen, capture_output=True, text=True, check=True).stdout
        assert "finished" in told and "12 of 12 episodes" in told
        stranger = {**os.environ, "RAY_AUTH_TOKEN": "not-the-token"}
        refused = subprocess.run(
            ["swarm-ui", "eval", "phone", "-n", "1", "--model", f"script:{script}", "--on",
             f"ray:{host}:{port}", "--out", "runs/stranger"],
            env=stranger, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert refused.returncode != 0, "another token plays nothing"
    found = snapshot(world / "runs/solo")
    assert (found.state, found.done, found.total) == ("finished", 12, 12)
    traces = read_jsonl(world / "runs/solo/traces/parameters.jsonl")
    assert len({(e.task, e.seed) for e in traces}) == len(traces) == 12
    assert (world / "runs/solo/report.html").is_file()
