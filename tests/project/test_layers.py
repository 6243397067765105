"""Rules that no single file shows: what each layer may import, and how large code may be."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("nodes", "environments", "optim")
HEAVY = {"torch", "transformers", "peft", "trl", "safetensors", "numpy", "matplotlib", "playwright",
         "miniwob", "android_env", "android_world", "ray", "vllm", "swarm",
         "opentelemetry", "pyarrow", "gymnasium", "pettingzoo", "jsonschema", "mcp", "wandb",
         "mlflow"}  # fmt: skip
FILES = sorted(
    path
    for folder in ("swarm_ui", *PARTS, "demos", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if not (folder == "swarm_ui" and path.relative_to(ROOT).parts[1] in PARTS)
)


LIBRARY = [p for p in FILES if p.relative_to(ROOT).parts[0] in ("swarm_ui", *PARTS)]
BENCHMARKS = [p for p in FILES if p.relative_to(ROOT).parts[0] == "benchmarks"]
COLLECTIONS = {
    "environments/phone/apps", "environments/phone/tasks",
    "environments/androidworld/handset/apps",
}  # fmt: skip
"""Folders of many modules of one kind."""
SAME_IDEA: dict[str, str] = {
    "failures": "why episodes failed, and how a report shows it",
    "environment": "the environment of each benchmark",
    "data": "the recorded data of each benchmark",
    "metrics": "the measures of each benchmark",
    "tasks": "the tasks of each environment",
    "splits": "what is held out in each environment",
    "page": "what a page of each benchmark shows",
    "geometry": "where elements are on the screen of each device",
    "widgets": "the widgets of each device",
    "input": "input to a page and to a device",
    "browser": "a browser",
    "credit": "credit of messages, and the command that compares critics",
    "replay": "replays, and the command that makes them",
    "report": "what a check or a run found",
    "config": "settings of a package",
    "preferences": "pairs of a right and a wrong action",
    "limits": "rates and budgets of a model, of one process and of a cluster",
    "plan": "what is going to be done: the calls of a run, the settings of a training",
    "run": "runs of a graph, and the command that makes one",
    "models": "the model of a run, and the commands that obtain models",
}
"""Module names used several times in one of the four parts, and what they mean in each."""


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def module_of(path: Path) -> str:
    """The dotted name under which a file is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[0] == "swarm_ui" else ["swarm_ui", *parts])


def deferred(node: ast.AST) -> bool:
    """Whether what stands inside does not run when the file is imported."""
    checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    return checking or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


@cache
def imports(path: Path, *, at_import_time: bool = False) -> tuple[str, ...]:
    """Modules a file imports, inside functions and for type checkers too.

    With ``at_import_time``: only those imported when the file itself is imported.
    """
    return tuple(imported(path, at_import_time))


def imported(path: Path, at_import_time: bool) -> Iterator[str]:
    pending: list[ast.AST] = [parse(path)]
    while pending:
        node = pending.pop()
        if at_import_time and deferred(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        pending.extend(ast.iter_child_nodes(node))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


MODULES = {module_of(path): path for path in LIBRARY}
REACHES_INTO_NODES = {
    "swarm_ui": "traces are drawn in notebooks",
    "swarm_ui.graph.graph": "CollabGraph.collaborative and CollabGraph.solo",
}
"""Modules of the core that may import nodes inside a function, and why."""
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
"""What each layer may import."""


def layer_of(module: str) -> str:
    part = module.split(".")[1] if "." in module else ""
    if module == "swarm_ui.__main__":
        return "cli"
    return part if part in ABOVE else "core"


def test_every_layer_imports_only_those_below_it() -> None:
    found = []
    for module, path in MODULES.items():
        for name in imports(path):
            own, other = layer_of(module), layer_of(name)
            if not name.startswith("swarm_ui") or other in ABOVE[own]:
                continue
            drawing = own == "core" and other == "viz"  # the _repr_svg_ of graphs and traces
            if other == "nodes" and module in REACHES_INTO_NODES:
                continue
            if not (drawing and module in REACHES_INTO_NODES):
                found.append(f"{module} imports {name}")
    assert found == []


def test_the_core_imports_no_layer_and_no_extra_when_it_is_imported() -> None:
    found = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if layer_of(module) == "core"
        for name in imports(path, at_import_time=True)
        if (name.startswith("swarm_ui.") and layer_of(name) != "core")
        or name.split(".")[0] in HEAVY
    ]
    assert found == []


def test_imports_have_no_cycle() -> None:
    graph = nx.DiGraph(
        (module, name)
        for module, path in MODULES.items()
        for name in imports(path)
        if name in MODULES and name != module
    )
    cycles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert cycles == []


def test_what_benchmarks_share_imports_neither_a_command_nor_a_study() -> None:
    found = [
        f"{path.name} imports {name}"
        for path in BENCHMARKS
        if path.parent == ROOT / "benchmarks" / "support"
        for name in imports(path)
        if name.startswith("benchmarks") and not name.startswith("benchmarks.support.")
    ]
    assert found == []


def test_a_module_name_stands_for_one_idea_in_a_part() -> None:
    places: dict[tuple[str, str], list[str]] = {}
    for path in LIBRARY:
        relative = path.relative_to(ROOT)
        if path.stem.startswith("__") or str(relative.parent) in COLLECTIONS:
            continue
        places.setdefault((relative.parts[0], path.stem), []).append(str(relative))
    found = {
        f"{part}: {name}": paths
        for (part, name), paths in places.items()
        if len(paths) > 1 and name not in SAME_IDEA
    }
    assert found == {}


def test_public_signatures_are_short() -> None:
    found = []
    for path in LIBRARY:
        pending: list[ast.AST] = [parse(path)]
        while pending:
            for node in ast.iter_child_nodes(pending.pop()):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    pending.append(node)
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if node.name.startswith("_") and node.name != "__init__":
                    continue
                given = node.args
                names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                count = len([name for name in names if name not in ("self", "cls")])
                if count > 10:
                    found.append(f"{path.relative_to(ROOT)}: {node.name}, {count}")
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
    talks = ("swarm_ui/cli/", "swarm_ui/experiment/")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}"
        for path in LIBRARY
        if path.name != "__main__.py" and not str(path.relative_to(ROOT)).startswith(talks)
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
        for module, path in MODULES.items()
        if layer_of(module) not in (*PARTS, "experiment")
        for name in imports(path, at_import_time=True)
    }
    assert found - core - set(sys.stdlib_module_names) == set()


def test_tests_of_behaviour_use_public_names_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in (ROOT / "tests/behaviour").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("swarm_ui.")
        and not (ROOT / str(node.module).replace(".", "/") / "__init__.py").is_file()
    ]
    assert wrong == []
