"""A release: what ``python -m build`` makes works in a new environment, without a checkout.

The slow test takes third-party packages from the running environment; the one marked ``network``
installs them from the index, as a user does.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from checkout_copy import copy_checkout

import swarm_ui

ROOT = Path(__file__).resolve().parents[2]
NAME = f"swarm_ui-{swarm_ui.__version__}"


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a program that cannot find the checkout; returns its output, or its errors if it fails.

    ``code``: the exit code that it must have.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``dist`` of a build: the sdist, and the wheel that is built from it."""
    source = tmp_path_factory.mktemp("release") / "swarm-ui"
    copy_checkout(source)
    run(sys.executable, "-m", "build", "--no-isolation", cwd=source)
    return source / "dist"


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """The folder of programs of a new virtual environment."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    return tmp_path / "venv" / "bin"


def play(programs: Path, folder: Path) -> None:
    """Play one episode with the embedded agent, and look at what was installed."""
    folder.mkdir()
    assert run(programs / "swarm-ui", "--version", cwd=folder) == (
        f"swarm-ui {swarm_ui.__version__}\n"
    )
    where = "import swarm_ui; print(swarm_ui.__file__)"
    installed = Path(run(programs / "python", "-c", where, cwd=folder).strip()).parent
    assert installed.is_relative_to(programs.parent) and (installed / "py.typed").is_file()
    told = run(programs / "swarm-ui", "eval", "phone", "contacts-add", "--agents", "2", "--views",
               "shuffle", "--vote", "probability", "--fail-under", "0", "--out", "r", "--json",
               cwd=folder)  # fmt: skip
    assert json.loads(told)["ok"] and (folder / "r" / "report.html").stat().st_size > 100_000
    adapters = json.loads(run(programs / "swarm-ui", "models", "adapters", "--json", cwd=folder))
    assert "smollm2-phone" in json.dumps(adapters)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_wheel_plays_an_episode_in_a_new_environment(
    dist: Path, clean: Path, tmp_path: Path
) -> None:
    (wheel,) = dist.glob("*.whl")
    run(clean / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    where = "import site; print(site.getsitepackages()[0])"
    packages = Path(run(clean / "python", "-c", where, cwd=tmp_path).strip())
    # A line of a .pth file adds a folder, but runs no .pth file in it: no editable installation.
    lines = "".join(f"{folder}\n" for folder in site.getsitepackages())
    (packages / "third_parties.pth").write_text(lines)
    play(clean, tmp_path / "empty")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_files_are_complete(dist: Path) -> None:
    assert {path.name for path in dist.iterdir()} == {
        f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz",
    }  # fmt: skip
    with zipfile.ZipFile(dist / f"{NAME}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        about = wheel.read(f"{NAME}.dist-info/METADATA").decode()
    assert f"{NAME}.dist-info/licenses/LICENSE" in names and "swarm_ui/py.typed" in names
    for data in ("tiny_agent/base_agent/model.safetensors",
                 "tiny_agent/general_agent/model.safetensors",
                 "tiny_agent/general_agent/training.json",
                 "pretrained/smollm2_phone/adapter_model.safetensors"):  # fmt: skip
        assert f"swarm_ui/nodes/models/{data}" in names
    assert f"\nVersion: {swarm_ui.__version__}\n" in about
    assert "\nLicense-Expression: Apache-2.0\n" in about
    assert "\nProvides-Extra: wandb\n" in about and "\nProvides-Extra: mlflow\n" in about
    assert "# swarm-ui" in about, "the README"
    with tarfile.open(dist / f"{NAME}.tar.gz") as sdist:
        inside = set(sdist.getnames())
    assert {f"{NAME}/LICENSE", f"{NAME}/README.md", f"{NAME}/pyproject.toml"} <= inside


@pytest.mark.network
@pytest.mark.timeout(3600)
def test_the_wheel_installs_with_its_dependencies_from_the_index(
    dist: Path, clean: Path, tmp_path: Path
) -> None:
    (wheel,) = dist.glob("*.whl")
    pip = (clean / "python", "-m", "pip", "install", "-c", ROOT / "constraints.txt")
    run(*pip, wheel, cwd=tmp_path)
    told = run(clean / "swarm-ui", "eval", "phone", cwd=tmp_path, code=2)
    assert "pip install 'swarm-ui[train]'" in told, "the core alone has no model in process"
    assert "contacts-add" in run(clean / "swarm-ui", "play", "phone", cwd=tmp_path)
    run(*pip, f"{wheel}[train]", cwd=tmp_path)
    play(clean, tmp_path / "empty")
