"""Graphs as text for drawing programs: Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from swarm_ui.graph.dag import Dag
from swarm_ui.graph.serialization import ConditionNames

# In a quoted label Mermaid still reads Markdown, HTML, comments and entities of its own.
_MERMAID = {ord(c): f"#{ord(c)};" for c in '"#&<>`*\\|[](){}$%'}


def to_mermaid(graph: Dag) -> str:
    """See :meth:`swarm_ui.graph.graph.CollabGraph.to_mermaid`."""
    lines = ["flowchart LR", *_mermaid(graph, "n", ConditionNames())]
    return "\n    ".join(lines) + "\n"


def _mermaid(graph: Dag, prefix: str, names: ConditionNames) -> Iterator[str]:
    ids = {name: f"{prefix}{k}" for k, name in enumerate(graph.nodes)}
    closing = frozenset(graph.closing)
    for name, node in graph.nodes.items():
        id, label = ids[name], name.translate(_MERMAID)
        if isinstance(node, Dag):
            yield f'subgraph {id}["{label}"]'
            yield "    direction LR"
            yield from ("    " + line for line in _mermaid(node, f"{id}_", names))
            yield "end"
        else:
            yield f'{id}(["{label}"])' if name in closing else f'{id}["{label}"]'
    for sender, listener in graph.edges:
        condition = graph.when.get((sender, listener))
        arrow = "-->"
        if condition is not None:
            arrow = f'-.->|"{names.of(condition).translate(_MERMAID)}"|'
        yield f"{ids[sender]} {arrow} {ids[listener]}"
    yield f"style {ids[graph.output]} stroke-width:3px"


def to_graphviz(graph: Dag) -> str:
    """See :meth:`swarm_ui.graph.graph.CollabGraph.to_graphviz`."""
    head = ["rankdir=LR", "compound=true", "node [shape=box]"]
    lines = [*head, *_dot(graph, "", ConditionNames())]
    return f"digraph {_quoted(graph.name)} {{\n    " + "\n    ".join(lines) + "\n}\n"


def _dot(graph: Dag, path: str, names: ConditionNames) -> Iterator[str]:
    """DOT statements. The id of a node has the names of the graphs around it, ``team/agent_0``."""
    closing = frozenset(graph.closing)
    for name, node in graph.nodes.items():
        bold = {"penwidth": "3"} if name == graph.output else {}
        if isinstance(node, Dag):
            yield f"subgraph {_quoted(f'cluster {path}{name}')} {{"
            for key, value in {"label": _label(name), **bold}.items():
                yield f"    {key}={value}"
            yield from ("    " + line for line in _dot(node, f"{path}{name}/", names))
            yield "}"
        else:
            round = {"style": "rounded"} if name in closing else {}
            yield f"{_quoted(path + name)}{_attributes(label=_label(name), **round, **bold)}"
    for sender, listener in graph.edges:
        told: dict[str, str] = {}
        condition = graph.when.get((sender, listener))
        if condition is not None:
            told = {"style": "dashed", "label": _label(names.of(condition))}
        tail, head = _anchor(graph, sender, first=False), _anchor(graph, listener, first=True)
        if tail != sender:  # DOT joins nodes only; the line then ends at the border of the cluster
            told["ltail"] = _quoted(f"cluster {path}{sender}")
        if head != listener:
            told["lhead"] = _quoted(f"cluster {path}{listener}")
        yield f"{_quoted(path + tail)} -> {_quoted(path + head)}{_attributes(**told)}"


def _anchor(graph: Dag, name: str, *, first: bool) -> str:
    """The drawn node for a name; for a nested graph, its first node or its output."""
    node = graph.nodes[name]
    if not isinstance(node, Dag):
        return name
    inner = node.output
    if first:
        inner = next(label for label, heard in node.predecessors.items() if not heard)
    return f"{name}/{_anchor(node, inner, first=first)}"


def _attributes(**values: str) -> str:
    told = ", ".join(f"{key}={value}" for key, value in values.items())
    return f" [{told}]" if told else ""


def _quoted(text: str) -> str:
    """A DOT id. A backslash escapes only a quote, and must not precede the closing quote."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(text: str) -> str:
    """A DOT label, in which backslashes and HTML entities mean something too."""
    return _quoted(text.replace("&", "&amp;"))
