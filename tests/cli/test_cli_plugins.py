"""Names that installed packages add: usable everywhere, shown, and harmless when broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli_world import Shell

from swarm_ui.trace.jsonl import read_jsonl

KITCHEN = '''\
"""A package with an environment, a model, a wrapper and a logger."""

from cli_world import Lamp
from swarm_ui import Completion
from swarm_ui.environments.wrappers import Wrapper


class Kitchen(Lamp):
    name = "kitchen"
    tasks = ("cook", "clean")


class Cook:
    """A model that switches things on."""

    name = "cook"

    async def generate(self, requests):
        reply = '{"action_type": "click", "target": "on", "index": 0}'
        return [Completion(text=reply, prompt="p") for _ in requests]


class Apron(Wrapper):
    """Changes nothing."""


class Cookbook:
    def __init__(self, folder, settings):
        self.path, self.name = folder / "cookbook.txt", settings["env.name"]

    def __call__(self, numbers):
        self.path.write_text(self.name)
'''
NAMES = {
    "environments": {"kitchen": "swarm_ui_kitchen:Kitchen", "phone": "swarm_ui_kitchen:Kitchen"},
    "models": {"cook": "swarm_ui_kitchen:Cook"},
    "wrappers": {"apron": "swarm_ui_kitchen:Apron"},
    "loggers": {"cookbook": "swarm_ui_kitchen:Cookbook"},
}
BROKEN = {
    "environments": {"cellar": "swarm_ui_broken:make"},
    "models": {"ghost": "swarm_ui_broken:make"},
    "wrappers": {"odd": "no callable"},
    "loggers": {"gone": "swarm_ui_missing:make"},
}


def install(site: Path, name: str, names: Mapping[str, Mapping[str, str]], source: str) -> None:
    """A package of version 1.0 with one module, in a folder of packages as pip would write it."""
    info = site / f"swarm_ui_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: swarm-ui-{name}\nVersion: 1.0\n")
    lines = []
    for kind, entries in names.items():
        lines += [f"[swarm_ui.{kind}]", *(f"{name} = {place}" for name, place in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site / f"swarm_ui_{name}.py").write_text(source, encoding="utf-8")


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the path, with one that works."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    for module in ("swarm_ui_kitchen", "swarm_ui_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    install(folder, "kitchen", NAMES, KITCHEN)
    return folder


@pytest.fixture
def broken(site: Path) -> Path:
    """The same, with a second package that cannot be imported."""
    install(site, "broken", BROKEN, "x = 1\nraise OSError('no wine')\n")
    return site


@pytest.mark.usefixtures("site")
def test_names_of_a_package_work_wherever_something_is_named(shell: Shell) -> None:
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
    unknown = shell("eval kitchen dance --model cook")
    assert unknown.code == 2 and "'kitchen' has no task 'dance'" in unknown.err
    (row,) = [m for m in shell("models list --json").json["models"] if m["name"] == "cook"]
    assert row["place"] == "swarm_ui_kitchen:Cook" and "swarm-ui-kitchen 1.0" in row["title"]
    assert "did you mean 'kitchen'?" in " ".join(shell("eval kichen").err.split())


@pytest.mark.usefixtures("site")
def test_a_strangers_folder_names_plug_ins_only_with_consent(shell: Shell) -> None:
    assert shell("eval kitchen --model cook run.log=cookbook --out r").code == 0
    refused = " ".join(shell("eval --resume r").err.split())
    for said in ("'kitchen' (the environment)", "'cook' (the model)", "'cookbook' (a logger)"):
        assert f"import and call {said}" in refused
    assert shell("eval --resume r --trust").code == 0


@pytest.mark.usefixtures("broken")
def test_doctor_imports_each_and_says_what_is_wrong(shell: Shell) -> None:
    done = shell("doctor --json")
    assert done.code == 0, "a broken plug-in is not a broken core"
    found = {c["name"]: c for c in done.json["checks"] if c["area"] == "plug-in"}
    assert "swarm_ui_kitchen:Kitchen" in found["plug-in kitchen"]["found"]
    assert "OSError: no wine" in found["plug-in cellar"]["do"]
    assert "swarm_ui_broken.py:2" in found["plug-in cellar"]["do"]
    assert "module:name" in found["plug-in odd"]["do"]
    assert "swarm_ui_missing" in found["plug-in gone"]["do"]


@pytest.mark.usefixtures("broken")
def test_a_package_that_cannot_be_imported_breaks_nothing_else(shell: Shell) -> None:
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
