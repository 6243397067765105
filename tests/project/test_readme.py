"""What the README and the documentation print, runs; what they point at, exists."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from cli_world import Shell
from doc_blocks import ALL, DOCUMENTS, PRINTED_ADDRESS, ROOT, Block, commands, problem
from doc_blocks import blocks as blocks_of
from vllm_stand_in import StandIn

from swarm_ui.environments.miniwob import find_browser

SHELL = ("sh", "bash")
_PAGES = "docs/howto/miniwob.md"  # plays real pages, which takes seconds
_LONG = (_PAGES, "docs/cli.md")


def of(*languages: str) -> list[object]:
    """The blocks in some languages; those that train a team take up to half a minute each."""
    trains = re.compile(r"trainer\.run_sync|^train\(", re.MULTILINE)
    return [
        pytest.param(
            block, id=block.id, marks=pytest.mark.slow if trains.search(block.text) else ()
        )
        for block in ALL
        if block.language in languages
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Stands where the pages expect a server, with the adapters that docs/howto/vllm.md serves."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    adapters = {f"agent_{k}": f"/srv/adapters/agent_{k}" for k in range(2)}
    with StandIn("Qwen/Qwen2.5-7B-Instruct", adapters) as running:
        yield running


@pytest.mark.timeout(600)  # seconds of work; on a busy machine it gets little of it
@pytest.mark.parametrize("block", of("python"))
def test_python_runs_as_printed(block: Block, tmp_path: Path, server: StandIn) -> None:
    """But for the address of the server, which is that of the stand-in."""
    text = block.text.replace(PRINTED_ADDRESS, server.address)
    if "MiniWobBrowser" in text and find_browser() is None:
        pytest.skip("no Chromium is installed")
    promised = re.findall(r"^ *print\(.*\)\s*# (.+)$", text, flags=re.MULTILINE)
    assert printed(text, tmp_path).splitlines() == promised


def printed(text: str, folder: Path) -> str:
    """What a program prints, run in this process, which has imported what it needs."""
    out, program = io.StringIO(), types.ModuleType("__main__")
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        mock.patch.dict(os.environ),
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore"),
    ):
        patch.setitem(sys.modules, "__main__", program)
        exec(compile(text, "<string>", "exec"), program.__dict__)
    return out.getvalue()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(d, marks=pytest.mark.slow if d in _LONG else ())
        for d in DOCUMENTS
        if any(b.language == "console" for b in blocks_of(d))
    ],
)
def test_console_runs_as_printed(document: str, shell: Shell, server: StandIn) -> None:
    """What is printed below a command stands in what it says, apart from how it is laid out."""
    pytest.importorskip("torch")
    if document == _PAGES and find_browser() is None:
        pytest.skip("no Chromium is installed")
    for block in blocks_of(document):
        if block.language != "console":
            continue
        for command, shown in sessions(block.text.replace(PRINTED_ADDRESS, server.address)):
            words = shlex.split(command)
            assert words[0] == "swarm-ui", command
            done = shell("", *words[1:])
            assert done.code in ((0, 1) if words[1] in ("eval", "doctor") else (0,)), (
                command,
                done.err,
            )
            said = " ".join((done.out + done.err).split())
            for line in shown:
                assert " ".join(line.split()) in said, (command, done.out, done.err)


def sessions(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines printed below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.strip() and line.strip() != "…":
            found[-1][1].append(line)
    return found


@pytest.mark.parametrize("block", of(*SHELL))
def test_shell_commands_are_known(block: Block) -> None:
    found = [problem(words) for words in commands(block.text)]
    assert [words for words in found if words is not None] == []
    if block.text.startswith("#!"):
        subprocess.run(["bash", "-n", "-c", block.text], check=True)


def test_messages_to_look_up_are_those_of_the_code() -> None:
    """Each quoted message of docs/troubleshooting.md, up to what differs."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = [
        words
        for row in re.findall(r"^\| (.*?) \|", page, flags=re.MULTILINE)
        for words in re.findall(r"`([^`]+)`", row)
        if " " in words and not words.startswith(("HTTP", "SWARM_UI"))
    ]
    folders = ("swarm_ui", "nodes", "environments", "optim")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    said = re.sub(r'"\n *f?"', "", source)  # a message of several literals
    assert [w for w in quoted if not all(part in said for part in w.split("…"))] == []
    assert len(quoted) > 20


@pytest.mark.parametrize("document", DOCUMENTS)
def test_relative_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    folder = (ROOT / document).parent
    assert [link for link in links if not (folder / link).exists()] == []
