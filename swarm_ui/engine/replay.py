"""Replays recorded runs, unchanged or with edits.

If a call would receive the recorded messages, its reply is taken from the record. Only edited
calls, and calls that receive other messages because of an edit, are made again. This makes
counterfactual credit cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from swarm_ui.engine.executor import execute, recorded, trace_of
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.run_context import Edits, Rewrite
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.check import unknown
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import MappedGraph, inner_graph
from swarm_ui.message import Message
from swarm_ui.model import Request
from swarm_ui.node import Node
from swarm_ui.prompts import chat_of
from swarm_ui.trace.records import Call, Trace

Prompt = str | Rewrite
"""The text of a whole prompt, as traces keep it, or a function that changes the request."""


async def replay(
    graph: Dag,
    trace: Trace,
    *,
    messages: Mapping[str, Message | str] | None = None,
    without: Iterable[str] = (),
    prompts: Mapping[str, Prompt] | None = None,
    nodes: Mapping[str, Node] | None = None,
    again: Iterable[str] = (),
    samples: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> Trace:
    """Replay a recorded run with changes; see :meth:`swarm_ui.graph.graph.CollabGraph.replay`.

    ``samples``: number of the sample to draw, by message id. Sample 0 has the recorded seed.
    """
    again = frozenset(again)
    for name, node in (nodes or {}).items():
        graph = _with_node(graph, name, node)
    edited = dict(messages or {})
    gone, rewrites, drawn = frozenset(without), dict(prompts or {}), dict(samples or {})
    past = recorded(trace)
    for id in (*edited, *gone, *rewrites, *drawn, *again):
        if id not in past:
            raise ConfigError(_no_message(id, past))
    redone = {id for id, (_, call) in past.items() if _is_changed(call, nodes or {})}
    edits = Edits(
        messages={id: _said(past[id][0], new) for id, new in edited.items()},
        without=gone,
        again=frozenset(redone) | again | frozenset(rewrites) | frozenset(drawn),
        samples=drawn,
        rewrites={id: _rewrite(new) for id, new in rewrites.items()},
    )
    running = execute(
        graph,
        trace.observation,
        seed=trace.seed,
        run_id=trace.run,
        edge_logprob=trace.edge_logprob,
        limits=limits,
        cached=trace,
        edits=edits,
    )
    return await trace_of(running)


async def resample(
    graph: Dag, trace: Trace, id: str, k: int, *, limits: Limits | None = None
) -> list[Trace]:
    """Make ``k`` traces with other samples of one call; see
    :meth:`swarm_ui.graph.graph.CollabGraph.resample`."""
    if k < 1:
        raise ConfigError(f"resample: k must be at least 1, got {k}")
    draws = range(1, k + 1)
    return await together(
        [replay(graph, trace, samples={id: draw}, limits=limits) for draw in draws]
    )


def _with_node(graph: Dag, path: str, node: Node, around: str = "") -> Dag:
    """The graph with another node under a name, which may lie in a nested graph."""
    name, _, inside = path.partition("/")
    if name not in graph.nodes:
        where = f"inside '{around[:-1]}': " if around else ""
        raise GraphError(where + unknown("node", name, graph.nodes))
    if inside:
        nested = graph.nodes[name]
        inner = inner_graph(nested)
        if inner is None:
            raise GraphError(f"'{name}' is not a graph, so there is no node '{path}'")
        changed = _with_node(inner, inside, node, f"{around}{name}/")
        whole = nested.with_graph(changed) if isinstance(nested, MappedGraph) else changed
        node = whole  # type: ignore[assignment]
    return graph.with_node(node, name=name)


def _is_changed(call: Call, nodes: Mapping[str, Node]) -> bool:
    """Whether a call's node is one of the changed nodes, or is inside one of them.

    Or around one of them, if the call failed: then the calls inside it are not recorded.
    """
    parts = call.node.split("/")
    if any("/".join(parts[:depth]) in nodes for depth in range(1, len(parts) + 1)):
        return True
    failed = call.error is not None or call.rescued is not None
    return failed and any(name.startswith(f"{call.node}/") for name in nodes)


def _said(message: Message, new: Message | str) -> Message:
    return msgspec.structs.replace(message, content=new) if isinstance(new, str) else new


def _rewrite(new: Prompt) -> Rewrite:
    if not isinstance(new, str):
        return new
    chat = chat_of(new)

    def ask(request: Request) -> Request:
        return msgspec.structs.replace(request, decision=None, chat=chat)

    return ask


def _no_message(id: str, past: Mapping[str, object]) -> str:
    known = ", ".join(list(past)[:8]) + (", ..." if len(past) > 8 else "")
    return f"no message '{id}' in the trace; it has {known}"
