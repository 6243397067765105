"""The code blocks of the README and of every page, and what each kind of them must pass.

``python``: run as printed. ``console``: every ``$ swarm-ui`` line is run, in order, page by page.
``sh`` and what stands for it: programs of ours are checked word by word, all others must be named
in :data:`NOT_RUN` with the reason. Any other language is shown, not run, and named there too.
"""

from __future__ import annotations

import functools
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from swarm_ui.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("README.md"), *ROOT.glob("C*.md"), *ROOT.glob("docs/**/*.md")]
)
PRINTED_ADDRESS = "http://localhost:8000"
"""Where pages expect a server; tests put a stand-in there."""

SDK = "needs Android's SDK, an emulator and KVM; compared with upstream's documents instead"
SERVER = "needs vLLM's own environment; test_vllm_server.py starts it with such options"
DATA = "fetches data sets of others"
CLUSTER = "needs a cluster; the commands of ours inside are checked"
SYSTEM = "changes the system it runs on"

NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/base_agent.md", "torchrun"): "a training of 12 minutes; tests run two steps of it",
    ("docs/howto/android_emulator.md", "emulator"): SDK,
    ("docs/howto/android_emulator.md", "git"): "clones another project; was run by hand",
    ("docs/howto/android_emulator.md", "python3.11"): "makes an environment; was run by hand",
    ("docs/howto/android_emulator.md", "aw/bin/pip"): "downloads packages; was run by hand",
    ("docs/howto/android_emulator.md", "aw/bin/python"): SDK,
    ("docs/howto/android_emulator.md", "sudo"): SYSTEM,
    ("docs/howto/miniwob.md", "sudo"): SYSTEM,
    ("docs/howto/web.md", "sudo"): SYSTEM,
    ("docs/howto/web.md", "python3"): "makes an environment; was run by hand",
    ("docs/howto/web.md", "bgym/bin/pip"): "downloads packages; was run by hand",
    ("docs/howto/mind2web.md", "hf"): DATA,
    ("docs/howto/mind2web.md", "unzip"): DATA,
    ("docs/howto/vllm.md", "vllm"): SERVER,
    ("docs/howto/vllm.md", "curl"): SERVER,
    ("docs/howto/vllm.md", "pip"): "the server's own environment",
    ("docs/howto/cluster.md", "srun"): CLUSTER,
    ("docs/howto/cluster.md", "sbatch"): CLUSTER,
    ("docs/howto/cluster.md", "ray"): "test_cluster_files.py runs them with two nodes",
    ("docs/howto/cluster.md", "kubectl"): CLUSTER,
    ("docs/howto/plugins.md", "pip"): "test_cli_plugins.py installs such a package",
    ("docs/quickstart.md", "git"): "clones this repository",
    (
        "docs/quickstart.md",
        "jupyter",
    ): "opens a browser; tests/project/test_notebooks.py runs them",
}
"""Programs of ``sh`` blocks that no test runs, by page, with the reason."""

_BUILTINS = ("cd", "export", "set", "test")

SHOWN: dict[tuple[str, str], str] = {
    ("docs/howto/llm_graphs.md", "text"): "a prompt, whose parts test_chat_node.py compares",
    ("docs/howto/cluster.md", "text"): "parts of programs for a cluster; test_episode_spans.py and "
    "test_cli_train_ray.py do the same",
    ("docs/training.md", "toml"): "a recipe for a GPU and a model of gigabytes",
    ("docs/howto/plugins.md", "toml"): "test_cli_plugins.py installs such a package",
    ("docs/models.md", "text"): "needs the pretrained model, which tests load with -m slow",
    ("docs/concepts.md", "text"): "a tree of folders",
}  # fmt: skip
"""Blocks of other languages, by page and language, with the reason."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    document: str
    number: int
    language: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.document}-{self.number}"


def blocks(document: str) -> list[Block]:
    """All fenced blocks of a page, also those inside lists and admonitions."""
    found: list[Block] = []
    fence: tuple[str, str] | None = None
    lines: list[str] = []
    for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
        mark = re.fullmatch(r"( *)(`{3,}|~{3,})(.*)", line)
        if fence is None and mark:
            fence, lines = (mark[1], mark[3].strip().split(" ")[0]), []
        elif fence is not None and mark and not mark[3]:
            found.append(Block(document, len(found), fence[1], "\n".join(lines) + "\n"))
            fence = None
        elif fence is not None:
            lines.append(line.removeprefix(fence[0]))
    assert fence is None, f"{document}: a block is not closed"
    return found


ALL = [block for document in DOCUMENTS for block in blocks(document)]


def commands(text: str) -> list[list[str]]:
    """Commands of a shell block as words; variables are ``1``, comments, builtins left out."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(re.sub(r"\$\w+", "1", line), posix=True, punctuation_chars="|&;")
        reader.whitespace_split = True
        words: list[str] = []
        for word in [*reader, ";"]:
            if set(word) <= set("|&;"):
                while words and re.fullmatch(r"\w+=.*", words[0]):
                    words = words[1:]
                found += [words] if words and words[0] not in _BUILTINS else []
                words = []
            else:
                words.append(word)
    return found


def problem(document: str, words: list[str]) -> str | None:
    """What is wrong with a command of a shell block; ``None``: nothing that can be seen."""
    program = words[0].removeprefix(".venv/bin/")
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        return None if set(words[1:2]) <= set(targets) else f"make has no target {words[1]}"
    if program == "swarm-ui":
        return _command(words[1:])
    if program == "python" or (program == "accelerate" and "-m" in words):
        return _script(words[1:])
    if program == "pip" and any(word.startswith(("swarm-ui[", ".[")) for word in words):
        return _extras(words)
    if (document, program) in NOT_RUN:
        ours = NOT_RUN[document, program] == CLUSTER and "swarm-ui" in words
        return _command(words[words.index("swarm-ui") + 1 :]) if ours else None
    return f"'{program}' is neither checked nor named in NOT_RUN with a reason"


@functools.cache
def _known() -> dict[str, Any]:
    """Our commands, by name."""
    found: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return found


def _command(words: list[str]) -> str | None:
    """Options and arguments of a command of ours."""
    known = _known()
    if words[:1] == ["--install-completion"]:
        return None
    if not words or words[0] not in known:
        return f"no command {words[:1]}"
    inner = getattr(known[words[0]], "commands", None)
    if inner is not None:  # a group of commands
        if len(words) < 2 or words[1] not in inner:
            return f"no command {words[:2]}"
        known, words = inner, words[1:]
    try:
        known[words[0]].make_context(words[0], [*words[1:]])
    except Exception as error:  # of click's many kinds
        return f"swarm-ui {' '.join(words)}: {error}"
    return None


def _script(words: list[str]) -> str | None:
    """A script or module of ours: that it is there, and that it knows its options."""
    if "-m" in words:
        at = words.index("-m") + 1
        name = words[at].split(".")
        if name == ["swarm_ui"]:
            return _command(words[at + 1 :])
        if name[0] not in ("swarm_ui", "benchmarks", "demos"):
            return None if name[0] == "pytest" else f"no module {words[at]} of ours"
        place = ROOT.joinpath(*name)
        place = place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
        rest, sources = words[at + 1 :], [place]
        if name[:2] == ["benchmarks", "speed"]:
            sources.append(ROOT / "benchmarks" / "speed" / "report.py")
    else:
        place = ROOT / words[0]
        rest, sources = (
            words[1:],
            [place, *sorted((ROOT / "swarm_ui" / "experiment").rglob("*.py"))],
        )
    if not place.is_file():
        return f"there is no {place.relative_to(ROOT)}"
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    # An option is declared by its flag, or by its name as the key of a table.
    declared = {*re.findall(r'"(--[a-z][a-z-]*)"', text)}
    declared |= {f"--{name}" for name in re.findall(r'^ +"([a-z][a-z-]*)": \(', text, re.MULTILINE)}
    lacking = [word for word in rest if word.startswith("--") and word not in declared]
    return f"{place.name} has no {', '.join(lacking)}" if lacking else None


def _extras(words: list[str]) -> str | None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"(?:swarm-ui|\.)\[([\w,]+)\]", " ".join(words))
    wrong = {extra for names in named for extra in names.split(",")} - set(known)
    return f"no extra {', '.join(sorted(wrong))}" if wrong else None
