"""Graphs as text for drawing programs: Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from swarm_ui.graph.conditions import ConditionNames, function_name
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import MappedGraph, inner_graph
from swarm_ui.graph.topology import Edge
from swarm_ui.node import Node

# In a quoted label Mermaid still reads Markdown, HTML, comments and entities of its own.
_MERMAID = {ord(c): f"#{ord(c)};" for c in '"#&<>`*\\|[](){}$%'}


def to_mermaid(graph: Dag) -> str:
    """Draw a graph as a Mermaid flow chart; see
    :meth:`swarm_ui.graph.graph.CollabGraph.to_mermaid`."""
    lines = ["flowchart LR", *_mermaid(graph, "n", ConditionNames())]
    return "\n    ".join(lines) + "\n"


def _mermaid(graph: Dag, prefix: str, names: ConditionNames) -> Iterator[str]:
    ids = {name: f"{prefix}{k}" for k, name in enumerate(graph.nodes)}
    closing = frozenset(graph.closing)
    for name, node in graph.nodes.items():
        id, label = ids[name], name.translate(_MERMAID)
        inner = inner_graph(node)
        if inner is not None:
            yield f'subgraph {id}["{(name + _each(node)).translate(_MERMAID)}"]'
            yield "    direction LR"
            yield from ("    " + line for line in _mermaid(inner, f"{id}_", names))
            yield "end"
        else:
            yield f'{id}(["{label}"])' if name in closing else f'{id}["{label}"]'
    for sender, listener in graph.edges:
        label = _edge_label(graph, (sender, listener), names).translate(_MERMAID)
        arrow = f'-.->|"{label}"|' if label else "-->"
        yield f"{ids[sender]} {arrow} {ids[listener]}"
    yield f"style {ids[graph.output]} stroke-width:3px"


def to_graphviz(graph: Dag) -> str:
    """Write a graph in Graphviz DOT; see :meth:`swarm_ui.graph.graph.CollabGraph.to_graphviz`."""
    head = ["rankdir=LR", "compound=true", "node [shape=box]"]
    lines = [*head, *_dot(graph, "", ConditionNames())]
    return f"digraph {_quoted(graph.name)} {{\n    " + "\n    ".join(lines) + "\n}\n"


def _dot(graph: Dag, path: str, names: ConditionNames) -> Iterator[str]:
    """DOT statements. The id of a node has the names of the graphs around it, ``team/agent_0``."""
    closing = frozenset(graph.closing)
    for name, node in graph.nodes.items():
        bold = {"penwidth": "3"} if name == graph.output else {}
        inner = inner_graph(node)
        if inner is not None:
            yield f"subgraph {_quoted(f'cluster {path}{name}')} {{"
            for key, value in {"label": _label(name + _each(node)), **bold}.items():
                yield f"    {key}={value}"
            yield from ("    " + line for line in _dot(inner, f"{path}{name}/", names))
            yield "}"
        else:
            round = {"style": "rounded"} if name in closing else {}
            yield f"{_quoted(path + name)}{_attributes(label=_label(name), **round, **bold)}"
    for sender, listener in graph.edges:
        label = _edge_label(graph, (sender, listener), names)
        told = {"style": "dashed", "label": _label(label)} if label else {}
        if (sender, listener) in graph.delays:  # it may run backwards, and moves no node
            told["constraint"] = "false"
        tail, head = _anchor(graph, sender, first=False), _anchor(graph, listener, first=True)
        if tail != sender:  # DOT joins nodes only; the line then ends at the border of the cluster
            told["ltail"] = _quoted(f"cluster {path}{sender}")
        if head != listener:
            told["lhead"] = _quoted(f"cluster {path}{listener}")
        yield f"{_quoted(path + tail)} -> {_quoted(path + head)}{_attributes(**told)}"


def _anchor(graph: Dag, name: str, *, first: bool) -> str:
    """The drawn node for a name; for a nested graph, its first node or its output."""
    node = inner_graph(graph.nodes[name])
    if node is None:
        return name
    inner = node.sources[0] if first else node.output
    return f"{name}/{_anchor(node, inner, first=first)}"


def _each(node: Node) -> str:
    """The suffix in drawings for the name of a graph that is run for every item."""
    return f", for each of {function_name(node.over)}" if isinstance(node, MappedGraph) else ""


def _edge_label(graph: Dag, edge: Edge, names: ConditionNames) -> str:
    """The condition and the delay of an edge; empty if it has neither."""
    condition, delay = graph.when.get(edge), graph.delays.get(edge)
    found = [] if condition is None else [names.of(condition)]
    return ", ".join([*found, *([] if delay is None else [f"delay {delay}"])])


def _attributes(**values: str) -> str:
    told = ", ".join(f"{key}={value}" for key, value in values.items())
    return f" [{told}]" if told else ""


def _quoted(text: str) -> str:
    """A quoted DOT id. In DOT, a backslash before a quote escapes it. So each backslash is doubled:
    a pair escapes nothing, and the last quote ends the id."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(text: str) -> str:
    """A DOT label, in which backslashes and HTML entities mean something too."""
    return _quoted(text.replace("&", "&amp;"))
