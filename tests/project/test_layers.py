"""What each layer may import (``[tool.importlinter]``), and how long a function may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("swarm_ui", "nodes", "environments", "optim", "demos", "benchmarks")
LIGHT = """
import importlib, pkgutil, sys
import swarm_ui
for found in pkgutil.walk_packages(swarm_ui.__path__, "swarm_ui."):
    if found.name.split(".")[1] not in ("nodes", "environments", "optim", "experiment"):
        importlib.import_module(found.name)
extras = {"torch", "transformers", "peft", "trl", "accelerate", "datasets", "numpy", "matplotlib",
          "ray", "playwright", "gymnasium", "pettingzoo", "opentelemetry", "tensorboard"}
print(*extras & sys.modules.keys())
"""


def test_layers_import_those_below_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    broken = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not broken, capsys.readouterr().out


def test_the_core_and_the_command_line_import_no_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == []


def test_functions_are_short() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    ] == []


def test_tests_of_behaviour_use_public_names_only() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in (ROOT / "tests/behaviour").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("swarm_ui.")
        and not (ROOT / str(node.module).replace(".", "/") / "__init__.py").is_file()
    ] == []
