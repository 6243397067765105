"""A vLLM server as a child process, for the tests and benchmarks of served adapters."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Self
from urllib.request import urlopen

_READY_SECONDS = 1500.0
"""It takes two minutes on two idle cores."""
_LAST_LINES = 30


class VLLMServer:
    """Runs ``vllm serve`` on a free port of 127.0.0.1 inside a ``with`` block. The process has a
    separate session, so that its children are killed with it."""

    def __init__(
        self,
        python: Path,
        model: Path,
        *,
        name: str = "actor",
        log: Path | None = None,
        threads: int = 1,
        max_loras: int = 4,
        max_len: int = 2048,
    ) -> None:
        """
        Args:
            python: interpreter of an environment with vLLM.
            model: folder of the model.
            name: its served name.
            log: file for the output of the server; ``None``: the output is discarded.
            threads: threads of the engine, for the CPU build.
            max_loras: adapters in one batch.
            max_len: maximum number of tokens of a prompt and its reply.
        """
        self.name, self.model, self.log = name, model, log
        self.port = _free_port()
        self._command = [
            str(python.parent / "vllm"), "serve", str(model), "--served-model-name", name,
            "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "bfloat16",
            "--enable-lora", "--max-loras", str(max_loras), "--max-cpu-loras", str(2 * max_loras),
            "--max-lora-rank", "16", "--max-model-len", str(max_len), "--enforce-eager",
            # Small steps: on a busy machine, one of 2,048 tokens with adapters takes minutes.
            "--max-num-batched-tokens", "512", "--max-num-seqs", "16",
        ]  # fmt: skip
        own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._environment = own | vllm_settings(threads)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start the process. Use :meth:`wait` to wait until it answers."""
        sink: IO[bytes] | int = subprocess.DEVNULL if self.log is None else self.log.open("ab")
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=sink,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        if not isinstance(sink, int):
            sink.close()

    def wait(self) -> float:
        """Wait until it answers; return the seconds. Raises ``RuntimeError``, with the last lines
        of the log, if it ends or does not answer in time."""
        assert self._process is not None
        began = time.monotonic()
        while time.monotonic() - began < _READY_SECONDS:
            if self._process.poll() is not None:
                raise RuntimeError(f"vLLM ended with {self._process.returncode}:\n{self._end()}")
            with suppress(OSError), urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5.0):
                return time.monotonic() - began
            time.sleep(1.0)
        self.kill()
        raise RuntimeError(f"vLLM did not answer within {_READY_SECONDS:g} s:\n{self._end()}")

    @property
    def group(self) -> int:
        """The process group of the server and its children."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """``kill -9`` of the server and its children."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _end(self) -> str:
        if self.log is None or not self.log.exists():
            return "(no log)"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LAST_LINES:])

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


def vllm_settings(threads: int = 1) -> dict[str, str]:
    """Environment variables for vLLM's CPU build, offline."""
    return {
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(threads),
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "3600",  # else a slow step ends the engine
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
