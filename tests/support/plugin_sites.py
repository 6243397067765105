"""Folders of installed packages that add names to swarm-ui, as pip would write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

KITCHEN = '''\
"""A package with an environment, a model, a wrapper and a logger."""

from cli_world import Lamp
from swarm_ui import Completion, transcript
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.prompts import as_chat


class Kitchen(Lamp):
    name = "kitchen"
    tasks = ("cook", "clean")


class Cook:
    """A model that switches things on."""

    name = "cook"

    async def generate(self, requests):
        reply = '{"action_type": "click", "target": "on", "index": 0}'
        return [Completion(text=reply, prompt=transcript(as_chat(r))) for r in requests]


class Apron(Wrapper):
    """Changes nothing."""


class Cookbook:
    def __init__(self, folder, settings):
        self.path, self.name = folder / "cookbook.txt", settings["env.name"]

    def __call__(self, numbers):
        self.path.write_text(self.name)
'''
NAMES: dict[str, dict[str, str]] = {
    "environments": {"kitchen": "swarm_ui_kitchen:Kitchen", "phone": "swarm_ui_kitchen:Kitchen"},
    "models": {"cook": "swarm_ui_kitchen:Cook"},
    "wrappers": {"apron": "swarm_ui_kitchen:Apron"},
    "loggers": {"cookbook": "swarm_ui_kitchen:Cookbook"},
}


def install(
    site: Path,
    package: str,
    names: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
) -> None:
    """Write a package of version 1.0 into a folder of packages.

    Args:
        site: the folder.
        package: the distribution, such as ``"swarm-ui-kitchen"``.
        names: the value of each entry point, by kind and name.
        modules: source by module name.
    """
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    (info / "METADATA").write_text(about, encoding="utf-8")
    lines = []
    for kind, entries in names.items():
        lines += [f"[swarm_ui.{kind}]", *(f"{name} = {place}" for name, place in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source, encoding="utf-8")
