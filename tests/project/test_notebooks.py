"""The notebooks run from top to bottom, and what is stored of them is small and clean."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from loopback import Loopback, Reply

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "demos" / "notebooks"
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

import refresh  # noqa: E402

STORED = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 300_000
QUICK = ["1_compose_a_graph", "3_your_own_environment", "4_coming_from_gptswarm_or_langgraph"]
FASTEST = {"3_your_own_environment"}
# A home, a temporary folder, a drive: nothing that names the machine a notebook ran on.
_PATHS = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|tmp|var|opt|usr|work|mnt|srv|private)/|[A-Z]:\\"
)
_TRAINED_ROWS = ("trained, agent_0 alone", "trained ×4, vote, no edges", "trained team")


def read(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def outputs(notebook: Any) -> list[Any]:
    return [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]


def printed(notebook: Any) -> str:
    return "".join(o.text for o in outputs(notebook) if o.output_type == "stream")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook in a fresh kernel that finds the library in this checkout."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # figures are shown in the notebook
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        place = tmp_path / name.lower()
        place.mkdir()
        monkeypatch.setenv(name, str(place))
    work = tmp_path / "work"
    work.mkdir()

    def execute(name: str, endpoint: str = "") -> Any:
        if endpoint:
            monkeypatch.setenv("OPENAI_BASE_URL", endpoint)
            monkeypatch.setenv("OPENAI_MODEL", "served-model")
        notebook = refresh.executed(read(name), work, timeout=900)
        assert list(work.iterdir()) == [], "a notebook leaves files where it runs"
        return notebook

    return execute


def kinds(notebook: Any) -> list[list[Any]]:
    """The kinds of output that each cell shows."""
    return [
        [o.get("name") or sorted(o.get("data", {})) for o in cell.get("outputs", ())]
        for cell in notebook.cells
    ]


# -- what is stored -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_as_executed_and_clean(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [cell.id for cell in notebook.cells] == [
        f"cell-{k:02}" for k in range(1, len(notebook.cells) + 1)
    ]
    assert notebook.metadata == refresh.METADATA
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert refresh.cleaned(nbformat.from_dict(notebook)) == notebook
    assert path.stat().st_size <= LARGEST
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = [link for link in re.findall(r"\]\(([^)#]+)", words) if "://" not in link]
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_names_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    texts = [printed(notebook)] + [
        text
        for output in outputs(notebook)
        for kind, text in output.get("data", {}).items()
        if not kind.startswith("image/png")
    ]
    found = [match[0] for text in texts for match in _PATHS.finditer(text)]
    assert found == []
    assert [o for o in outputs(notebook) if o.get("name") == "stderr"] == []
    assert [o for o in outputs(notebook) if o.output_type == "error"] == []


# -- what they do ---------------------------------------------------------------------------------


@pytest.mark.timeout(600)  # seconds of work; a kernel on a busy machine gets little of it
@pytest.mark.parametrize(
    "name",
    [name if name in FASTEST else pytest.param(name, marks=pytest.mark.slow) for name in QUICK],
)
def test_runs(name: str, run: Any) -> None:
    ran = run(name)
    assert kinds(ran) == kinds(read(name)), printed(ran)
    assert lines(ran) == lines(read(name))


def lines(notebook: Any) -> list[str]:
    """What was printed, without measured times and examples of steps that are drawn at random."""
    return [
        line
        for line in printed(notebook).splitlines()
        if not re.match(r" +(task '|and \d+ more)|.* \d+ ms to +\d+ ms", line)
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_models_of_an_endpoint_write_and_review(
    run: Any,
) -> None:
    """Notebook 1 with an endpoint: its nodes ask there, with their roles and tools."""

    def served(body: dict[str, Any]) -> Reply:
        role = body["messages"][0]["content"]
        if "facts" in role and body["messages"][-1]["role"] != "tool":
            return Reply(calls=(("1", "population", '{"city": "Ulm"}'),), text=None)
        return Reply("OK, the served critic agrees." if "review" in role else "Served: Ulm.")

    async with Loopback(served, models=["served-model"]) as server:
        ran = await asyncio.to_thread(run, "1_compose_a_graph", endpoint=server.url)
    words = printed(ran)
    assert "round 1, critic: OK, the served critic agrees.\n" in words
    assert "1 rounds, ended by approved" in words
    assert "printed: Served: Ulm." in words
    assert {seen.body["model"] for seen in server.requests} == {"served-model"}
    assert {each["function"]["name"] for s in server.requests for each in s.body.get("tools", ())
            } == {"population"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_team_trains(run: Any) -> None:
    name = "2_train_a_team"
    ran = run(name)
    assert kinds(ran) == kinds(read(name)), printed(ran)
    words = printed(ran)
    assert len(re.findall(r"^iteration \d: \d+ of \d+ episodes solved, guided$", words, re.M)) == 3
    for row in _TRAINED_ROWS:
        assert re.search(rf"^{row}.* \S+ \[\S+, \S+\] +[+-]\S+ \[\S+, \S+\]$", words, re.M), words
    assert "96 test episodes for each row;" in words
