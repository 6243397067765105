"""Builds the environments of the systems that swarm_ui is compared with.

    python benchmarks/peers/build.py langgraph|gptswarm [FOLDER] [--python P] [--dry-run] [-- PIP…]

Default folder: ``~/.cache/swarm-ui/peers/NAME``. Arguments after ``--`` go to pip, for example
``-- --extra-index-url https://download.pytorch.org/whl/cpu`` for the small CPU build of PyTorch
that GPTSwarm needs (2 GB with it, 4 without). A complete environment with these pins is not
changed; an incomplete one is built again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: GPTSwarm's own requirements end in an import error without the last four: setuptools 81 took
#: pkg_resources away, its pandas is compiled for numpy 1, its sentence-transformers wants an old
#: huggingface_hub, and nothing else holds PyTorch to the version the other benchmarks use.
PINS = {
    "langgraph": ["langgraph==1.2.22"],
    "gptswarm": [
        "gptswarm==0.1.0",
        "torch==2.13.0",
        "setuptools<81",
        "numpy<2",
        "huggingface_hub<0.26",
    ],
}
IMPORTS = {"langgraph": "langgraph.graph", "gptswarm": "swarm.graph.graph"}
NEWEST = {"langgraph": (3, 99), "gptswarm": (3, 11)}
"""Newest Python there are wheels for (GPTSwarm's pandas 1.5)."""


def default_folder(name: str) -> Path:
    """The default folder of an environment."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "swarm-ui" / "peers" / name


def interpreter(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def build(
    name: str,
    folder: Path | None = None,
    *,
    python: str = sys.executable,
    dry_run: bool = False,
    pip: list[str] | None = None,
) -> Path:
    """The interpreter of a working environment, which is built if it does not exist.

    Raises:
        SystemExit: the Python is too new for the peer, or pip failed; the message says which.
    """
    folder = folder or default_folder(name)
    stamp = folder / "built.txt"
    pins = "\n".join(PINS[name])
    if stamp.exists() and stamp.read_text() == pins:
        return interpreter(folder)
    install = [str(interpreter(folder)), "-m", "pip", "install", *(pip or []), *PINS[name]]
    if dry_run:
        print(f"{python} -m venv {folder}", " ".join(map(repr, install)), sep="\n")
        return interpreter(folder)
    _check_version(name, python)
    if (folder / "pyvenv.cfg").exists():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not an environment and not empty: give another folder")
    print(f"building the environment of {name} in {folder}", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    for command in (
        [python, "-m", "venv", str(folder)],
        install,
        [str(interpreter(folder)), "-c", f"import {IMPORTS[name]}"],
    ):
        done = subprocess.run(command, stdout=sys.stderr)
        if done.returncode:
            raise SystemExit(f"{name}: this failed, see above: {' '.join(command)}")
    stamp.write_text(pins)
    return interpreter(folder)


def _check_version(name: str, python: str) -> None:
    ask = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    found = tuple(map(int, subprocess.run(ask, capture_output=True, check=True).stdout.split()))
    newest = NEWEST[name]
    if not (3, 11) <= found <= newest:
        raise SystemExit(
            f"{name} runs here on Python 3.11{' or newer' if newest > (3, 11) else ''}, "
            f"not on {found[0]}.{found[1]}: name one with --python"
        )


def main() -> None:
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    own, pip = words[:place], words[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", choices=sorted(PINS))
    parser.add_argument("folder", nargs="?", type=Path, help="default: below ~/.cache/swarm-ui")
    parser.add_argument("--python", default=sys.executable, help="interpreter to build with")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    args = parser.parse_args(own)
    print(build(args.name, args.folder, python=args.python, dry_run=args.dry_run, pip=pip))


if __name__ == "__main__":
    main()
