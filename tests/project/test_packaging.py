"""What is installed is one name, complete, and works away from the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from checkout_copy import copy_checkout

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("nodes", "optim", "environments")
SHIPPED = (".py", ".js", ".css", ".html", ".json", ".jsonl", ".safetensors")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Runs in an empty directory against the unpacked package alone, as if torch were not installed.
PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules["torch"] = None
import swarm_ui
heavy = {"transformers", "peft", "trl", "openai", "numpy", "matplotlib"} & set(sys.modules)
assert not heavy, f"import swarm_ui brought in {heavy}"
import swarm_ui.trace.records, swarm_ui.storage.run_directory, swarm_ui.nodes, swarm_ui.environments
from swarm_ui.report import ReportData, page
assert page(ReportData(title="t", summary="s")).startswith("<!doctype html>")
for module in (swarm_ui, swarm_ui.nodes, swarm_ui.environments, swarm_ui.report):
    assert next(iter(module.__path__)).startswith(sys.argv[1]), module
print("works")
"""


def run(*command: str, cwd: Path, fails: bool = False) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("source") / "swarm-ui"
    copy_checkout(target)
    return target


@pytest.fixture(scope="session")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(copy, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    code = f"from setuptools import build_meta as b; b.build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code, cwd=copy)
    (path,) = folder.glob("*.tar.gz")
    return path


def build_wheel(source: Path, folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "--wheel-dir", str(folder), str(source), cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def packaged(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {n for n in archive.namelist() if ".dist-info/" not in n}


def test_wheel_has_one_name_at_the_top(wheel: Path) -> None:
    assert {name.split("/")[0] for name in packaged(wheel)} == {"swarm_ui"}


def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Also the guard against a new sub-package or data file that pyproject.toml does not name."""
    wanted = {"swarm_ui/py.typed"}
    for folder in ("swarm_ui", *LINKED):
        inside = "" if folder == "swarm_ui" else "swarm_ui/"
        wanted |= {
            inside + path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.suffix in SHIPPED and "__pycache__" not in path.parts
            and not (folder == "swarm_ui" and path.relative_to(ROOT).parts[1] in LINKED)
        }  # fmt: skip
    assert sorted(wanted - packaged(wheel)) == []


def test_wheel_works_from_an_empty_directory(wheel: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert "works" in run(sys.executable, "-c", PROBE, str(site), cwd=empty)


@pytest.mark.slow
def test_sdist_holds_the_linked_folders_and_builds_the_same_wheel(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
    (source,) = (p for p in tmp_path.iterdir() if p.is_dir())
    for folder in LINKED:
        assert (source / "swarm_ui" / folder / "__init__.py").is_file()
    assert (source / "LICENSE").is_file()
    again = tmp_path / "wheel"
    again.mkdir()
    assert packaged(build_wheel(source, again)) == packaged(wheel)


@pytest.mark.parametrize("folder", LINKED)
def test_folders_cannot_be_imported_by_their_bare_names(folder: str) -> None:
    told = run(sys.executable, "-c", f"import {folder}", cwd=ROOT, fails=True)
    assert f"import swarm_ui.{folder}, not {folder}" in told


@pytest.mark.parametrize("folder", LINKED)
def test_links_are_relative(folder: str) -> None:
    link = ROOT / "swarm_ui" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder


def test_core_dependencies_are_few_and_without_torch() -> None:
    names = {d.split(">")[0].split("=")[0] for d in PROJECT["project"]["dependencies"]}
    wanted = {"msgspec", "networkx", "openai", "asyncio-throttle", "rich", "typer", "pillow"}
    assert names == wanted


def test_constraints_pin_everything_to_public_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pins["torch"] == "2.13.0"
    assert not [name for name, version in pins.items() if "+" in version or "/" in version]
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["train"], *extras["web"], *extras["dev"]]
    assert not [w for w in wanted if w.split(">")[0].split("=")[0] not in pins]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on the PATH")
class TestMakefile:
    def test_installs_once_and_passes_arguments_on(self, copy: Path, tmp_path: Path) -> None:
        venv = tmp_path / "venv"
        first = run("make", "-n", "demo", "ARGS=--quick", f"VENV={venv}", cwd=copy)
        assert f"-m venv {venv}" in first
        assert "-c constraints.txt -e '.[train,web,dev,docs]'" in first
        assert f"{venv}/bin/python demos/androidworld_swarm.py --quick" in first
        venv.mkdir()
        (venv / ".installed").touch()
        second = run("make", "-n", "demo", f"VENV={venv}", cwd=copy)
        assert "pip install" not in second

    def test_says_what_is_missing(self, copy: Path, tmp_path: Path) -> None:
        told = run("make", "demo", "PYTHON=", f"VENV={tmp_path}/venv", cwd=copy, fails=True)
        assert "needs Python 3.11 or newer" in told
        assert not (tmp_path / "venv").exists()
