"""Serves LangGraph to benchmarks.speed.engine; runs in a separate environment (environments.py).

A node with several predecessors is joined with ``add_edge([...], node)``, which waits for all.
Answers are kept in one dictionary of the state. Its reducer adds in place, because the time of a
reducer that copies would grow with the square of the number of nodes.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from serve import CALLS, Graphs, Run, Shape, Work, serve
from typing_extensions import TypedDict


def add(said: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    said.update(new)
    return said


class State(TypedDict):
    said: Annotated[dict[str, str], add]


def node(work: Work, k: int) -> Any:
    """The node's function."""
    name = f"n{k}"
    seconds = work.seconds[k] if work.seconds else 0.0

    async def noop(state: State) -> dict[str, dict[str, str]]:
        CALLS[0] += 1
        return {"said": {name: "."}}

    async def sleep(state: State) -> dict[str, dict[str, str]]:
        CALLS[0] += 1
        await asyncio.sleep(seconds)
        return {"said": {name: "."}}

    return noop if work.kind == "noop" else sleep


def langgraph(shape: Shape, work: Work) -> Run:
    """A compiled ``StateGraph`` without a checkpointer."""
    graph = StateGraph(State)
    for k, senders in enumerate(shape.heard()):
        graph.add_node(f"n{k}", node(work, k))
        if len(senders) > 1:
            graph.add_edge([f"n{j}" for j in senders], f"n{k}")
        else:
            graph.add_edge(f"n{senders[0]}" if senders else START, f"n{k}")
    for k in shape.sinks():
        graph.add_edge(f"n{k}", END)
    compiled = graph.compile()
    last = f"n{shape.size - 1}"

    async def run() -> Any:
        config = {"recursion_limit": shape.size + 10}  # of supersteps, not of Python
        return (await compiled.ainvoke({"said": {}}, config))["said"][last]

    return run


if __name__ == "__main__":
    serve(Graphs({"langgraph": langgraph}), version=version("langgraph"))
