"""What each layer may import, and how long a function may be."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("nodes", "environments", "optim")
CORE = {"msgspec", "networkx", "openai", "asyncio_throttle", "rich", "typer", "PIL", "pydantic",
        "swarm_ui"}  # fmt: skip
"""What the core may import when it is imported."""
ABOVE = {
    "core": {"core"},
    "viz": {"core", "viz"},
    "report": {"core", "viz", "report"},
    "nodes": {"core", "nodes"},
    "environments": {"core", "environments"},
    "optim": {"core", "viz", "optim"},
    "experiment": {"core", "viz", "report", *PARTS, "experiment"},
    "cli": {"core", "viz", "report", *PARTS, "experiment", "cli"},
}
"""What each layer may import, also inside functions."""
REACHES_UP = {
    ("swarm_ui", "viz"), ("swarm_ui", "nodes"),  # graphs and traces are drawn in notebooks
    ("swarm_ui.graph.graph", "viz"), ("swarm_ui.graph.graph", "nodes"),  # collaborative and solo
}  # fmt: skip


def module_of(path: Path) -> str:
    """The dotted name under which a file is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[0] == "swarm_ui" else ["swarm_ui", *parts])


MODULES = {
    module_of(path): path
    for folder in ("swarm_ui", *PARTS)
    for path in (ROOT / folder).rglob("*.py")
    if not (folder == "swarm_ui" and path.relative_to(ROOT).parts[1] in PARTS)
}


def layer_of(module: str) -> str:
    part = module.split(".")[1] if "." in module else ""
    if module == "swarm_ui.__main__":
        return "cli"
    return part if part in ABOVE else "core"


@cache
def imports(path: Path, *, at_import_time: bool = False) -> tuple[str, ...]:
    """Modules that a file imports; with ``at_import_time`` only when it is imported itself."""
    return tuple(_imported(path, at_import_time))


def _imported(path: Path, at_import_time: bool) -> Iterator[str]:
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if at_import_time and (checking or inside):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        pending.extend(ast.iter_child_nodes(node))


def test_every_layer_imports_only_those_below_it() -> None:
    assert [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in imports(path)
        if name.startswith("swarm_ui")
        and layer_of(name) not in ABOVE[layer_of(module)]
        and (module, layer_of(name)) not in REACHES_UP
    ] == []


def test_the_core_imports_no_layer_and_no_extra_when_it_is_imported() -> None:
    allowed = CORE | set(sys.stdlib_module_names)
    assert [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if layer_of(module) not in (*PARTS, "experiment")
        for name in imports(path, at_import_time=True)
        if name.split(".")[0] not in allowed
        or (layer_of(module) == "core" and layer_of(name) != "core")
    ] == []


def test_imports_have_no_cycle() -> None:
    graph = nx.DiGraph(
        (module, name)
        for module, path in MODULES.items()
        for name in imports(path)
        if name in MODULES and name != module
    )
    assert [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def test_functions_are_short() -> None:
    files = [*MODULES.values(), *ROOT.glob("demos/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]
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
