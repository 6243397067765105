"""What the checks against the real GPTSwarm share; imported inside its environment only."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

from loguru import logger
from swarm.graph.graph import Graph
from swarm.graph.node import Node
from swarm.llm.llm import LLM

logger.remove()  # GPTSwarm logs every answer in full


def task(goal: str) -> dict[str, Any]:
    return {"task": goal, "files": [], "GT": ""}


class Hashing(LLM):
    """A language model of GPTSwarm's whose answer is a hash of the whole prompt."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        await asyncio.sleep(0)
        return self.gen(messages)

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        text = messages if isinstance(messages, str) else "\n".join(m.content for m in messages)
        self.asked.append(text)
        return sha256(text.encode()).hexdigest()[:12]


class Single(Graph):
    """An agent of one operation."""

    def __init__(self, operation: Node) -> None:
        self.operation = operation
        super().__init__("gaia", "mock")

    def build_graph(self) -> None:
        self.add_node(self.operation)
        self.input_nodes = [self.operation]
        self.output_nodes = [self.operation]


class Chain(Graph):
    """An agent whose operations follow each other."""

    def __init__(self, *operations: Node) -> None:
        self.operations = operations
        super().__init__("gaia", "mock")

    def build_graph(self) -> None:
        for operation in self.operations:
            self.add_node(operation)
        for before, after in zip(self.operations, self.operations[1:], strict=False):
            before.add_successor(after)
        self.input_nodes = [self.operations[0]]
        self.output_nodes = [self.operations[-1]]


class Operation(Node):
    """The least a GPTSwarm operation can be."""

    def __init__(self) -> None:
        super().__init__("for the checks", None, True)

    async def _execute(self, inputs: Any, **kwargs: Any) -> Any:
        (only,) = inputs if isinstance(inputs, list) else [inputs]
        await asyncio.sleep(0)
        return [{**only, "output": self.work(only)}]

    def work(self, record: dict[str, Any]) -> Any:
        return record.get("output", record["task"]) + "!"


class Broken(Operation):
    def work(self, record: dict[str, Any]) -> Any:
        raise LookupError("the cupboard is bare")


def with_hashing(graph: Graph) -> Hashing:
    llm = Hashing()
    for node in graph.nodes.values():
        node.llm = llm
    return llm


def theirs(graph: Graph, goal: str) -> Any:
    (answer,) = asyncio.run(graph.run(task(goal)))
    return answer
