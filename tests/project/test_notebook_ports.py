"""Notebook 4: what a block of LangGraph's or GPTSwarm's prints, the cell below it prints too.

The blocks run as printed, by the real packages in environments of their own: LangGraph with
``-m slow``, GPTSwarm with ``-m gptswarm``.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gptswarm_env
import nbformat
import pytest

from benchmarks.speed.environments import interpreter

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "demos" / "notebooks" / "4_coming_from_gptswarm_or_langgraph.ipynb"
MODELS = ROOT / "tests" / "support" / "ports"


@dataclass(frozen=True, slots=True)
class Port:
    """A block of theirs, and what our cell below it printed when the notebook was stored."""

    title: str
    package: str
    block: str
    printed: str


def ports(notebook: Any) -> list[Port]:
    """The blocks whose first line is the name of a package, in their order."""
    found: list[Port] = []
    for k, cell in enumerate(notebook.cells):
        block = re.search(r"```python\n# (LangGraph|GPTSwarm)\n(.*?)```", cell.source, re.DOTALL)
        if cell.cell_type != "markdown" or block is None:
            continue
        ours = notebook.cells[k + 1]
        printed = "".join(o.text for o in ours.get("outputs", ()) if o.output_type == "stream")
        found.append(Port(cell.source.partition("\n")[0], block[1], block[2], printed))
    return found


PORTS = ports(nbformat.read(NOTEBOOK, as_version=4))


def of(package: str) -> list[Any]:
    return [pytest.param(port, id=port.title) for port in PORTS if port.package == package]


@pytest.fixture(scope="session")
def langgraph() -> Path:
    try:
        return interpreter("langgraph")
    except FileNotFoundError as error:
        pytest.skip(str(error))


def output(python: Path, model: str, port: Port, folder: Path) -> str:
    """What the block prints there, with the scripted model of that name before it."""
    script = folder / "block.py"
    script.write_text((MODELS / model).read_text(encoding="utf-8") + "\n\n" + port.block, "utf-8")
    done = subprocess.run(
        [str(python), str(script)], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_five_ports_of_langgraph_and_one_of_gptswarm() -> None:
    assert [port.package for port in PORTS] == ["LangGraph"] * 5 + ["GPTSwarm"]
    assert [port.title for port in PORTS if not port.printed] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("port", of("LangGraph"))
def test_langgraph_prints_the_same(port: Port, langgraph: Path, tmp_path: Path) -> None:
    assert output(langgraph, "langgraph_model.py", port, tmp_path) == port.printed


@pytest.mark.gptswarm
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("port", of("GPTSwarm"))
def test_gptswarm_prints_the_same(port: Port, tmp_path: Path) -> None:
    try:
        python = gptswarm_env.python()
    except gptswarm_env.NoPython as reason:
        pytest.skip(str(reason))
    assert output(python, "gptswarm_model.py", port, tmp_path) == port.printed
