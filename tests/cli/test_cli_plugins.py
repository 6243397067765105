"""Names that installed packages add: usable everywhere, shown, and harmless when broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import Shell
from plugin_sites import KITCHEN, NAMES, install

from swarm_ui.trace.jsonl import read_jsonl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the path, with one that works."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    for module in ("swarm_ui_kitchen", "swarm_ui_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    install(folder, "swarm-ui-kitchen", NAMES, {"swarm_ui_kitchen": KITCHEN})
    return folder


@pytest.fixture
def broken(site: Path) -> Path:
    """The same, with a second package that cannot be imported."""
    names = {
        "environments": {"cellar": "swarm_ui_broken:make"},
        "models": {"ghost": "swarm_ui_broken:make"},
        "wrappers": {"odd": "no callable"},
        "loggers": {"gone": "swarm_ui_missing:make"},
    }
    install(
        site, "swarm-ui-broken", names, {"swarm_ui_broken": "x = 1\nraise OSError('no wine')\n"}
    )
    return site


def test_names_of_a_package_work_wherever_something_is_named(shell: Shell, site: Path) -> None:
    line = "eval kitchen --model cook env.wrap=apron run.log=cookbook"
    done = shell(f"{line} --out r --json")
    assert done.code == 0, done.err
    episodes = read_jsonl(shell.folder / "r/traces/episodes.jsonl")
    assert {e.environment for e in episodes} == {"kitchen"} and all(e.success for e in episodes)
    assert (shell.folder / "r/cookbook.txt").read_text() == "kitchen"
    labels = json.loads((shell.folder / "r/results.json").read_text())["labels"]
    assert labels[0] == ("plug-in 'kitchen' of swarm-ui-kitchen 1.0 (swarm_ui_kitchen:Kitchen)")
    assert shell("play kitchen").out.split() == ["cook", "clean"]
    plan = shell(f"{line} --dry-run --json").json
    assert plan["model"].startswith("plug-in 'cook' of swarm-ui-kitchen 1.0")
    assert shell("eval kitchen cook --model cook -n 1 --out e").code == 0
    (shell.folder / "my.toml").write_text('[env]\nname = "kitchen"\n[model]\nname = "cook"')
    assert shell("eval --config my.toml --dry-run").code == 0
    unknown = shell("eval kitchen dance --model cook")
    assert unknown.code == 2 and "'kitchen' has no task 'dance'" in unknown.err


def test_a_strangers_folder_names_plug_ins_only_with_consent(shell: Shell, site: Path) -> None:
    done = shell("eval kitchen --model cook run.log=cookbook --out r")
    assert done.code == 0
    refused = " ".join(shell("eval --resume r").err.split())
    for said in ("'kitchen' (the environment)", "'cook' (the model)", "'cookbook' (a logger)"):
        assert f"import and call {said}" in refused
    assert shell("eval --resume r --trust").code == 0


def test_they_are_shown_where_names_are_listed(shell: Shell, site: Path) -> None:
    (row,) = [m for m in shell("models list --json").json["models"] if m["name"] == "cook"]
    assert row["place"] == "swarm_ui_kitchen:Cook" and "swarm-ui-kitchen 1.0" in row["title"]
    shown = shell("models list").out
    assert "cook" in shown and "plug-in of" in shown and "swarm-ui-kitchen 1.0" in shown
    wrong = shell("eval kichen")
    assert wrong.code == 2 and "did you mean 'kitchen'?" in " ".join(wrong.err.split())
    assert "base, general, smollm2, cook, the folder" in " ".join(
        shell("eval phone -m nobody").err.split()
    )


def test_doctor_imports_each_and_says_what_is_wrong(shell: Shell, broken: Path) -> None:
    done = shell("doctor --json")
    assert done.code == 0, "a broken plug-in is not a broken core"
    found = {c["name"]: c for c in done.json["checks"] if c["area"] == "plug-in"}
    assert found["plug-in kitchen"]["found"] == (
        "environment of swarm-ui-kitchen 1.0 (swarm_ui_kitchen:Kitchen)"
    )
    assert "OSError: no wine" in found["plug-in cellar"]["do"]
    assert "swarm_ui_broken.py:2" in found["plug-in cellar"]["do"]
    assert "module:name" in found["plug-in odd"]["do"]
    assert "swarm_ui_missing" in found["plug-in gone"]["do"]


def test_a_package_that_cannot_be_imported_breaks_nothing_else(shell: Shell, broken: Path) -> None:
    assert shell("eval kitchen --model cook --out r").code == 0
    assert shell("models list").code == 0 and shell("eval --help").code == 0
    for line in (
        "eval cellar --model cook",
        "play cellar",
        "eval kitchen --model ghost",
        "eval kitchen --model cook env.wrap=odd",
        "eval kitchen --model cook run.log=gone",
    ):
        done = shell(line)
        told = " ".join(done.err.split())
        assert done.code == 2 and "Traceback" not in told, (line, told)
        assert "of swarm-ui-broken 1.0" in told and "cannot be used" in told, told
    assert not list(shell.folder.glob("runs/*"))


PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "swarm-ui-kitchen"
version = "1.0"

[project.entry-points."swarm_ui.environments"]
kitchen = "swarm_ui_kitchen:Kitchen"

[project.entry-points."swarm_ui.models"]
cook = "swarm_ui_kitchen:Cook"

[tool.setuptools]
py-modules = ["swarm_ui_kitchen"]
"""


@pytest.mark.slow
def test_a_package_that_pip_installed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "swarm_ui_kitchen.py").write_text(KITCHEN)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(target), str(source)], check=True)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests/support"), str(target)])
    done = subprocess.run(
        [sys.executable, "-m", "swarm_ui", "eval", "kitchen", "--model", "cook", "--out", "r"],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "plug-in 'kitchen' of swarm-ui-kitchen 1.0" in " ".join(done.stdout.split())
