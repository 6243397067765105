"""Continues a run that waits for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from swarm_ui.engine.events import OnEvent
from swarm_ui.engine.executor import execute, recorded
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.run_context import Edits
from swarm_ui.engine.schedule import count_spent
from swarm_ui.engine.telemetry import in_trace
from swarm_ui.errors import ConfigError
from swarm_ui.graph.check import unknown
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import MappedGraph, inner_graph
from swarm_ui.storage.protocol import ReadableStore
from swarm_ui.trace.records import Trace


async def resume(
    graph: Dag,
    run: str | Trace,
    answers: Mapping[str, str],
    *,
    store: ReadableStore | None = None,
    edge_logprob: float | None = None,
    limits: Limits | None = None,
    on_event: OnEvent | None = None,
) -> Trace:
    """Continue a run that waits for a person; see
    :meth:`swarm_ui.graph.graph.CollabGraph.resume`."""
    for key, answer in answers.items():
        _check_asks(graph, key)
        if not isinstance(answer, str):
            raise ConfigError(
                f"resume: the answer to '{key}' is a {type(answer).__name__}; expected a str"
            )
    edits = Edits(answers=dict(answers))
    if isinstance(run, Trace):
        _check_open(answers, (message.id for message in run.messages), run.run)
        count_spent(graph, run.run, run.seed, recorded(run))
        with in_trace(run.traceparent):
            return await execute(
                graph,
                run.observation,
                seed=run.seed,
                run_id=run.run,
                edge_logprob=run.edge_logprob,
                cached=run,
                limits=limits,
                on_event=on_event,
                edits=edits,
            )
    if store is None:
        raise ConfigError(
            f"resume: to find the run '{run}' by its name, set store=; or pass the attribute "
            "'partial' of the RunPaused error instead of the name"
        )
    record = store.read(run)
    _check_open(answers, (message.id for message, _ in record.calls), run)
    with in_trace(next((question.traceparent for question in record.questions), "")):
        return await execute(
            graph,
            record.head.observation,
            seed=record.head.seed,
            run_id=run,
            edge_logprob=edge_logprob,
            limits=limits,
            store=store,
            on_event=on_event,
            edits=edits,
        )


def _check_asks(graph: Dag, key: str) -> None:
    """Raise unless an answer is for a node of the graph, by its name or a message id."""
    graphs, mapped = [graph], False
    for part in key.split("/"):
        name = part.partition(":")[0]
        if mapped and name == "item" and ":" in part:
            continue
        nodes = [g.nodes[name] for g in graphs if name in g.nodes]
        if not nodes:
            members = graphs[0].nodes if graphs else graph.nodes
            raise ConfigError(f"resume, answer to '{key}': {unknown('node', name, members)}")
        nodes += [g.fallbacks[name] for g in graphs if name in g.fallbacks]
        graphs = [inner for node in nodes if (inner := inner_graph(node)) is not None]
        mapped = any(isinstance(node, MappedGraph) for node in nodes)


def _check_open(answers: Mapping[str, str], made: Iterable[str], run: str) -> None:
    done = set(made)
    for key in answers:
        if key in done:
            raise ConfigError(
                f"resume: '{key}' of run '{run}' is answered already; to change an answer use "
                f"graph.replay(trace, messages={{'{key}': answer}})"
            )
