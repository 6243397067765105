"""Where the slow tests find vLLM's environment and SmolLM2, and a server of both; they skip where
there is none."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.request import urlopen

import pytest

from benchmarks.speed.environments import VLLM_VARIABLE, interpreter

ROOT = Path(__file__).resolve().parents[2]
MODEL = "SWARM_UI_SMOLLM2"


def vllm_python() -> Path:
    """The Python of the environment with vLLM."""
    try:
        return interpreter("vllm")
    except FileNotFoundError as error:
        if os.environ.get(VLLM_VARIABLE):
            pytest.fail(str(error))
        pytest.skip(str(error))


def smollm2() -> Path:
    """The folder of SmolLM2 as transformers saves it."""
    given = os.environ.get(MODEL)
    if not given:
        pytest.skip(f"no SmolLM2: {MODEL} must name its folder")
    if not (Path(given) / "config.json").is_file():
        pytest.fail(f"{MODEL} must name the folder of a model, got {given!r}")
    return Path(given)


_READY_SECONDS = 1500.0
"""It takes two minutes on two idle cores."""


class VLLMServer:
    """Runs ``vllm serve`` on a free port of 127.0.0.1 inside a ``with`` block. The process has a
    separate session, so that its children are killed with it."""

    def __init__(self, python: Path, model: Path, *, log: Path, max_loras: int = 4) -> None:
        """
        Args:
            python: interpreter of an environment with vLLM.
            model: folder of the model, which is served as ``actor``.
            log: file for the output of the server.
            max_loras: adapters in one batch.
        """
        self.name, self.model, self.log = "actor", model, log
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._command = [
            str(python.parent / "vllm"), "serve", str(model), "--served-model-name", self.name,
            "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "bfloat16",
            "--enable-lora", "--max-loras", str(max_loras), "--max-cpu-loras", str(2 * max_loras),
            "--max-lora-rank", "16", "--max-model-len", "2048", "--enforce-eager",
            # Small steps: on a busy machine, one of 2,048 tokens with adapters takes minutes.
            "--max-num-batched-tokens", "512", "--max-num-seqs", "16",
        ]  # fmt: skip
        own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._environment = own | vllm_settings()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start the process. Use :meth:`wait` to wait until it answers."""
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=sink,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> float:
        """Wait until it answers; return the seconds. Raises ``RuntimeError``, with the end of the
        log, if it ends or does not answer in time."""
        assert self._process is not None
        began = time.monotonic()
        while time.monotonic() - began < _READY_SECONDS and self._process.poll() is None:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5.0):
                return time.monotonic() - began
            time.sleep(1.0)
        code = self._process.poll()
        self.kill()
        how = "did not answer in time" if code is None else f"ended with {code}"
        raise RuntimeError(f"vLLM {how}:\n{self.log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """``kill -9`` of the server and its children."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait()
        except BaseException:  # re-raised: no server stays behind
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def vllm_settings() -> dict[str, str]:
    """Environment variables for vLLM's CPU build with one thread, offline."""
    return {
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "3600",  # else a slow step ends the engine
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
