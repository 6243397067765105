"""What ``python -m build`` makes is one name, complete, and works away from the repository.

The slow tests take third-party packages from the running environment; the one marked ``network``
installs them from the index, as a user does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import swarm_ui

ROOT = Path(__file__).resolve().parents[2]
NAME = f"swarm_ui-{swarm_ui.__version__}"
LINKED = ("nodes", "optim", "environments")
SHIPPED = (".py", ".js", ".css", ".html", ".json", ".jsonl", ".safetensors")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Runs in an empty directory against the unpacked package alone, as if torch were not installed.
PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules["torch"] = None
import swarm_ui
heavy = {"transformers", "peft", "trl", "openai", "numpy", "matplotlib"} & set(sys.modules)
assert not heavy, f"import swarm_ui brought in {heavy}"
import swarm_ui.trace.records, swarm_ui.storage.run_directory, swarm_ui.nodes, swarm_ui.environments
import pathlib, tempfile
from swarm_ui.report import write_report
page = write_report(pathlib.Path(tempfile.mkdtemp()))
assert page.read_text().startswith("<!doctype html>")
for module in (swarm_ui, swarm_ui.nodes, swarm_ui.environments, swarm_ui.report):
    assert next(iter(module.__path__)).startswith(sys.argv[1]), module
"""


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a program that cannot find the checkout; returns what it says.

    ``code``: the exit code that it must have.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository without what git ignores, so that nothing stale is built."""
    target = tmp_path_factory.mktemp("source") / "swarm-ui"
    built = (".venv", ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(*built))
    return target


@pytest.fixture(scope="session")
def wheel(source: Path) -> Path:
    """The wheel that is built from the sdist beside it."""
    run(sys.executable, "-m", "build", "--no-isolation", cwd=source)
    names = {f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"}
    assert {path.name for path in (source / "dist").iterdir()} == names
    return source / "dist" / f"{NAME}-py3-none-any.whl"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_is_complete_and_works_from_an_empty_directory(
    wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = archive.read(f"{NAME}.dist-info/METADATA").decode()
        assert f"{NAME}.dist-info/licenses/LICENSE" in archive.namelist()
        archive.extractall(tmp_path / "site")
    wanted = {"swarm_ui/py.typed"}
    for folder in ("swarm_ui", *LINKED):
        inside = "" if folder == "swarm_ui" else "swarm_ui/"
        wanted |= {
            inside + path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.suffix in SHIPPED and "__pycache__" not in path.parts
            and not (folder == "swarm_ui" and path.relative_to(ROOT).parts[1] in LINKED)
        }  # fmt: skip
    assert sorted(wanted - names) == []
    assert {name.split("/")[0] for name in names} == {"swarm_ui"}
    assert f"\nVersion: {swarm_ui.__version__}\n" in about and "# swarm-ui" in about, "the README"
    assert "\nLicense-Expression: Apache-2.0\n" in about
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "version" in PROJECT["dynamic"] and f"## {swarm_ui.__version__}" in changelog
    with tarfile.open(wheel.with_name(f"{NAME}.tar.gz")) as sdist:
        inside = set(sdist.getnames())
    assert {f"{NAME}/LICENSE", f"{NAME}/README.md", f"{NAME}/pyproject.toml"} <= inside
    (tmp_path / "empty").mkdir()
    run(sys.executable, "-c", PROBE, str(tmp_path / "site"), cwd=tmp_path / "empty")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "index",
    [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.network)],
)
def test_the_wheel_plays_an_episode_in_a_new_environment(
    wheel: Path, tmp_path: Path, index: bool
) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    programs, folder = tmp_path / "venv" / "bin", tmp_path / "empty"
    pip = (programs / "python", "-m", "pip", "install")
    if index:
        run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
        told = run(programs / "swarm-ui", "eval", "phone", cwd=tmp_path, code=2)
        assert "swarm-ui[train]" in told, "the core alone has no model in process"
        run(*pip, "-c", ROOT / "constraints.txt", f"{wheel}[train]", cwd=tmp_path)
    else:
        run(*pip, "--no-deps", "--no-index", wheel, cwd=tmp_path)
        where = "import site; print(site.getsitepackages()[0])"
        packages = Path(run(programs / "python", "-c", where, cwd=tmp_path).strip())
        # A line of a .pth file adds a folder, but runs no .pth file in it: nothing editable.
        lines = "".join(f"{folder}\n" for folder in sys.path if folder.endswith("site-packages"))
        (packages / "third_parties.pth").write_text(lines)
    folder.mkdir()
    where = "import swarm_ui; print(swarm_ui.__file__)"
    installed = Path(run(programs / "python", "-c", where, cwd=folder).strip()).parent
    assert installed.is_relative_to(programs.parent) and (installed / "py.typed").is_file()
    line = "eval phone contacts-add --agents 2 team.views=shuffle team.vote=probability --json"
    told = run(programs / "swarm-ui", *line.split(), "--fail-under", "0", "--out", "r", cwd=folder)
    assert json.loads(told)["ok"] and (folder / "r" / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("folder", LINKED)
def test_a_linked_folder_has_one_name(folder: str) -> None:
    link = ROOT / "swarm_ui" / folder
    assert link.is_symlink() and link.readlink() == Path("..") / folder
    told = run(sys.executable, "-c", f"import {folder}", cwd=ROOT, code=1)
    assert f"import swarm_ui.{folder}, not {folder}" in told


def test_requirements_are_few_and_pinned_to_public_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert not [name for name, version in pins.items() if "+" in version or "/" in version]
    extras = PROJECT["optional-dependencies"]
    core = {re.split("[><=]", wanted)[0] for wanted in PROJECT["dependencies"]}
    assert core == {
        "msgspec", "networkx", "openai", "asyncio-throttle", "rich", "typer", "pillow",
        "pydantic",
    }  # fmt: skip
    wanted = [*extras["train"], *extras["web"], *extras["dev"]]
    assert core | {re.split("[><=]", each)[0] for each in wanted} <= set(pins)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on the PATH")
def test_make_installs_once_and_passes_arguments_on(source: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    told = run("make", "demo", "PYTHON=", f"VENV={venv}", cwd=source, code=2)
    assert "3.11" in told and not venv.exists()
    first = run("make", "-n", "demo", "ARGS=--out here", f"VENV={venv}", cwd=source)
    assert f"-m venv {venv}" in first and "-c constraints.txt -e" in first
    assert f"{venv}/bin/python demos/androidworld_swarm.py --out here" in first
    venv.mkdir()
    (venv / ".installed").touch()
    assert "pip install" not in run("make", "-n", "demo", f"VENV={venv}", cwd=source)
