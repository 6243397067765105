"""The code blocks of the README and of every page, and what each kind of them must pass.

``python``: run as printed. ``console``: every ``$ swarm-ui`` line is run, in order, page by page.
``sh`` and what stands for it: programs of ours are checked word by word. All else is shown only.
"""

from __future__ import annotations

import functools
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cli_world
from sybil import Document
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("README.md"), *ROOT.glob("C*.md"), *ROOT.glob("docs/**/*.md")]
)
PRINTED_ADDRESS = "http://localhost:8000"
"""Where pages expect a server; tests put a stand-in there."""
OTHERS = {
    "accelerate", "aw/bin/pip", "aw/bin/python", "bgym/bin/pip", "curl", "emulator", "git", "hf",
    "jupyter", "kubectl", "pip", "python3", "python3.11", "ray", "sbatch", "srun", "sudo",
    "torchrun", "unzip", "vllm",
}  # fmt: skip
"""Programs of others, which are not checked."""
_BUILTINS = ("cd", "export", "set", "test")


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
    path = str(ROOT / document)
    page = Document((ROOT / document).read_text(encoding="utf-8"), path)
    fences = sorted(FencedCodeBlockLexer(language="[^\n]*")(page), key=lambda region: region.start)
    return [
        Block(document, k, f"{fence.lexemes['language']} ".split(" ")[0], fence.lexemes["source"])
        for k, fence in enumerate(fences)
    ]


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


def problem(words: list[str]) -> str | None:
    """What is wrong with a command of a shell block; ``None``: nothing that can be seen."""
    words = [words[0].removeprefix(".venv/bin/"), *words[1:]]
    program = words[0]
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        return None if set(words[1:2]) <= set(targets) else f"make has no target {words[1]}"
    if program == "python" or (program == "accelerate" and "-m" in words):
        return _script(words[1:])
    if program == "pip" and any(word.startswith(("swarm-ui[", ".[")) for word in words):
        return _extras(words)
    if program in ("swarm-ui", "srun") and "swarm-ui" in words:
        return _command(words[words.index("swarm-ui") + 1 :])
    return None if program in OTHERS else f"'{program}' is no program that pages name"


_known = functools.cache(cli_world.commands)


def _command(words: list[str]) -> str | None:
    """Options and arguments of a command of ours."""
    if words[:1] == ["--install-completion"]:
        return None
    size = 2 if " ".join(words[:2]) in _known() else 1
    command: Any = _known().get(" ".join(words[:size]))
    if command is None:
        return f"no command {words[:2]}"
    try:
        command.make_context(words[0], words[size:])
    except Exception as error:  # of click's many kinds
        return f"swarm-ui {' '.join(words)}: {error}"
    return None


def _script(words: list[str]) -> str | None:
    """A script or module of ours: that it is there, and that it knows its options."""
    sources = [ROOT / "benchmarks/speed/report.py", *(ROOT / "swarm_ui/experiment").rglob("*.py")]
    if "-m" in words:
        at = words.index("-m") + 1
        name = words[at].split(".")
        if name == ["swarm_ui"]:
            return _command(words[at + 1 :])
        if name[0] not in ("benchmarks", "demos"):
            return None if name[0] == "pytest" else f"no module {words[at]} of ours"
        place, rest = ROOT.joinpath(*name), words[at + 1 :]
        place = place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
    else:
        place, rest = ROOT / words[0], words[1:]
    if not place.is_file():
        return f"there is no {place.relative_to(ROOT)}"
    text = "".join(source.read_text(encoding="utf-8") for source in (place, *sources))
    # An option is declared by its flag, or by its name as the key of a table.
    lacking = [
        word for word in rest
        if word.startswith("--") and f'"{word}"' not in text and f'"{word[2:]}": (' not in text
    ]  # fmt: skip
    return f"{place.name} has no {', '.join(lacking)}" if lacking else None


def _extras(words: list[str]) -> str | None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"(?:swarm-ui|\.)\[([\w,]+)\]", " ".join(words))
    wrong = {extra for names in named for extra in names.split(",")} - set(known)
    return f"no extra {', '.join(sorted(wrong))}" if wrong else None
