"""Recorded runs, continued or made again with changes.

If a call would receive the recorded messages, its reply is taken from the record. Only edited
calls, and calls that receive other messages because of an edit, are made again. This makes
counterfactual credit cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from swarm_ui.engine.limits import Limits
from swarm_ui.engine.memo import Memo
from swarm_ui.engine.plan import count_spent
from swarm_ui.engine.run import run, trace_of
from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError
from swarm_ui.events import OnEvent
from swarm_ui.graph.check import listed, unknown
from swarm_ui.graph.dag import Dag
from swarm_ui.message import PERSON, Message
from swarm_ui.node import Node, NodeReply
from swarm_ui.storage.journal import Head, Journal
from swarm_ui.trace.records import Trace


async def replay(
    graph: Dag,
    trace: Trace,
    *,
    messages: Mapping[str, Message | str] | None = None,
    without: Iterable[str] = (),
    nodes: Mapping[str, Node] | None = None,
    again: Iterable[str] = (),
    samples: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> Trace:
    """Replay a recorded run with changes; only the calls that they affect are made again.

    Returns the new trace, under the same run name and seed. Without changes no call is made.
    Answers of people stand, also where the question changes. The graph may have other edges: nodes
    that receive other messages over them are called again.

    Args:
        messages: replacements of recorded messages, by id; a string replaces only the content.
        without: ids of messages that are not delivered.
        nodes: by name, another node, or the same with another model; all its calls are made again.
        again: ids of calls to make again as they were.
        samples: number of the sample to draw, by message id. Sample 0 has the recorded seed.
        limits: the limits of the run.

    Raises ``ConfigError`` if an id is not in the trace, ``GraphError`` if there is no such node.
    """
    for name, node in (nodes or {}).items():
        _ = graph[name]  # raises if there is no such node
        graph = graph.with_node(node, name=name)
    edited, gone, past = messages or {}, frozenset(without), trace.recorded()
    repeated = {id for id, call in past.items() if call.node.partition("/")[0] in (nodes or {})}
    repeated.update(again)
    for id in (*edited, *gone, *(samples or {}), *repeated):
        if id not in past:
            raise ConfigError(f"no message '{id}' in the trace; it has {listed(past)}")
    memo = Memo(
        past,
        replies={id: _reply(past[id].message, new) for id, new in edited.items()},
        without=gone,
        again=repeated,
        samples=samples,
        answers={id: call.reply for id, call in past.items() if call.model == PERSON},
    )
    running = run(
        graph, trace.observation, seed=trace.seed, run_id=trace.run, limits=limits, memo=memo
    )
    return await trace_of(running)


async def resample(
    graph: Dag, trace: Trace, message: str, k: int, *, limits: Limits | None = None
) -> list[Trace]:
    """``k`` traces, in which the call of a message, by its id, is made with other seeds, and the
    calls whose messages change again. Sample ``i`` is the same every time.

    An agent at temperature 0 gives the same answer every time; first give it another temperature
    with ``nodes=`` of :meth:`replay`.
    """
    if k < 1:
        raise ConfigError(f"resample: k must be at least 1, got {k}")
    samples = [{message: draw} for draw in range(1, k + 1)]
    return await together([replay(graph, trace, samples=s, limits=limits) for s in samples])


def _reply(message: Message, new: Message | str) -> NodeReply:
    said = msgspec.structs.replace(message, content=new) if isinstance(new, str) else new
    return msgspec.convert(said, NodeReply, from_attributes=True)


async def resume(
    graph: Dag,
    run_id: str | Trace,
    answers: Mapping[str, str] = MappingProxyType({}),
    *,
    journal: Journal | None = None,
    limits: Limits | None = None,
    on_event: OnEvent | None = None,
) -> Trace:
    """Continue a run that waits for a person (see :class:`~swarm_ui.nodes.ask.Ask`).

    Only the calls that are missing are made.

    Args:
        run_id: name of the run in ``journal``; or its trace so far, ``RunPaused.partial``.
        answers: by message id (``"approve:0"``), or by the node's name for all its questions.
        journal: where the run is.
        limits, on_event: as in a new run.

    Raises ``RunPaused`` if a question is still open, and ``ConfigError`` if there is no such run or
    node, or the question is answered already.
    """
    if isinstance(run_id, Trace):
        head: Trace | Head = run_id
        made, journal = run_id.recorded(), None
        count_spent(graph, head.run, head.seed, made)
    elif journal is None:
        raise ConfigError(
            f"resume: to find the run '{run_id}' by its name, set journal=; or pass the attribute "
            "'partial' of the RunPaused error instead of the name"
        )
    else:
        head, made = journal.read(run_id).head, journal.read(run_id).calls
    for key in answers:
        name = key.partition("/")[0].partition(":")[0]
        if name not in graph.nodes:
            raise ConfigError(f"resume, answer to '{key}': {unknown('node', name, graph.nodes)}")
        if key in made:
            raise ConfigError(
                f"resume: '{key}' of run '{head.run}' is answered already; to change an answer use "
                f"graph.replay(trace, messages={{'{key}': answer}})"
            )
    return await run(
        graph, head.observation, seed=head.seed, run_id=head.run, journal=journal,
        limits=limits, on_event=on_event, memo=Memo(made, answers=answers),
    )  # fmt: skip
