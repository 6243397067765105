"""The house rules that a reader cannot see in one file: who may import whom, and how long."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("nodes", "environments", "optim")
HEAVY = {"torch", "transformers", "peft", "trl", "safetensors", "numpy", "matplotlib", "websockets",
         "miniwob", "android_env", "android_world", "ray", "vllm", "swarm",
         "opentelemetry", "pyarrow", "gymnasium", "pettingzoo"}  # fmt: skip
FILES = sorted(
    path
    for folder in ("swarm_ui", *PARTS, "demos", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if not (folder == "swarm_ui" and path.relative_to(ROOT).parts[1] in PARTS)
)


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def deferred(node: ast.AST) -> bool:
    """Whether what stands inside does not run when the file is imported."""
    checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    return checking or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports(tree: ast.Module, *, at_import_time: bool) -> Iterator[str]:
    """Modules a file imports; with ``at_import_time``, only when it is itself imported."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if at_import_time and deferred(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS)
def test_parts_never_import_each_other(part: str) -> None:
    others = tuple(f"swarm_ui.{p}" for p in PARTS if p != part)
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FILES
        if part_of(path) == part
        for name in imports(parse(path), at_import_time=False)
        if f"{name}.".startswith(tuple(f"{o}." for o in others))
    ]
    assert found == []


def test_core_does_not_import_the_parts_when_it_is_imported() -> None:
    ours = tuple(f"swarm_ui.{p}." for p in PARTS)
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FILES
        if part_of(path) == "swarm_ui"
        for name in imports(parse(path), at_import_time=True)
        if f"{name}.".startswith(ours)
    ]
    assert found == []


def test_core_does_not_import_extras_when_it_is_imported() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FILES
        if part_of(path) == "swarm_ui"
        for name in imports(parse(path), at_import_time=True)
        if name.split(".")[0] in HEAVY
    ]
    assert found == []


def test_files_are_short() -> None:
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in FILES}
    assert {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > 500} == {}


def test_functions_are_short() -> None:
    functions = [
        (path.relative_to(ROOT), node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path in FILES
        if part_of(path) != "tests"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [f"{where}: {name}, {lines}" for where, name, lines in functions if lines > 60] == []


def test_library_code_neither_prints_nor_evaluates() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}"
        for path in FILES
        if part_of(path) in ("swarm_ui", *PARTS) and path.name != "__main__.py"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "eval", "exec")
    ]
    assert found == []


def test_nothing_is_left_for_later() -> None:
    later = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)))
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if later.search(line)
    ]
    assert found == []


def test_third_parties_are_declared() -> None:
    """Every module imported at import time by the core is a core dependency."""
    core = {"msgspec", "networkx", "openai", "asyncio_throttle", "rich", "typer", "PIL",
            "swarm_ui"}  # fmt: skip
    found = {
        name.split(".")[0]
        for path in FILES
        if part_of(path) == "swarm_ui"
        for name in imports(parse(path), at_import_time=True)
    }
    assert found - core - set(sys.stdlib_module_names) == set()
