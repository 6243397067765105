"""A GPTSwarm operation, or a whole GPTSwarm agent, as a node."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

from swarm_ui.errors import ConfigError, MissingExtra, SwarmError
from swarm_ui.message import Message, Usage
from swarm_ui.model import ChatMessage, ChatModel, Completion, Request
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.observation import render

Given = Literal["if_alone", "never", "only", "joined"]
Sends = Literal["text", "records"]
Record = dict[str, Any]
MakeTask = Callable[[NodeContext], Record]
T = TypeVar("T")

# The defaults of swarm.llm.llm.LLM.
_MAX_TOKENS = 1000
_TEMPERATURE = 0.2
_BLOCKING = frozenset({"CodeWriting", "FileAnalyse", "GenerateQuery", "UnitestGeneration",
                       "WebSearch"})  # fmt: skip
"""Operations of the package that block inside their async code: downloads, searches, files,
programs. Some share state of their modules, so only one may run at a time."""
_REPLACED = frozenset({"inputs", "memory", "outputs", "predecessors", "successors"})
_KEY = "gptswarm"


class NotSerializable(SwarmError):
    """An operation answered with something that cannot be written as text."""


def check_is(value: Any, kind: str) -> None:
    """Check that a value is a GPTSwarm ``Node``, ``Graph`` or ``Swarm``. Raises ``MissingExtra`` if
    GPTSwarm, or something it needs, is not installed, and ``ConfigError`` for other objects."""
    try:
        expected = getattr(import_module(f"swarm.graph.{kind.lower()}"), kind)
    except ImportError as error:
        raise MissingExtra("gptswarm", "GPTSwarm interop", error.name or "swarm") from error
    if not isinstance(value, expected):
        raise ConfigError(f"expected a GPTSwarm {kind}, got a {type(value).__name__}")


def task_of(context: NodeContext) -> Record:
    """The task as in GPTSwarm's own examples: the goal, and the screen if there is one."""
    screen = context.observation
    text = f"{screen.goal}\n\n{render(screen)}" if screen.elements else screen.goal
    return {"task": text, "files": [], "GT": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The settings of both kinds of nodes."""

    task: MakeTask = task_of
    model: ChatModel | None = None
    adapter: str | None = None
    blocking: bool | None = None
    timeout: float | None = None

    def _complete(self, id: str, operations: Iterable[Any]) -> None:
        """Set the fields whose defaults depend on the wrapped object."""
        object.__setattr__(self, "id", id)
        if self.blocking is None:
            object.__setattr__(self, "blocking", any(map(_blocks, operations)))


@dataclass(frozen=True, slots=True)
class GPTSwarmNode(_Settings):
    """A GPTSwarm operation, that is any ``swarm.graph.node.Node``, as a node of our graphs.

    Each call runs ``execute()`` on a private copy, with the messages of the predecessors as its
    inputs, so one operation serves any number of runs at a time. An error of the operation is an
    error of this node. In later rounds its own last message is the first input.

    Attributes:
        operation: the GPTSwarm node. Its edges are not read: see :func:`import_graph`.
        id: name in a graph; ``""``: the operation's class.
        given: when its input is the task. ``"if_alone"``: when the inbox is empty; ``"never"``;
            ``"only"``: always, and without the messages, like an input node of GPTSwarm;
            ``"joined"``: always, with the messages appended to the task.
        sends: ``"text"``: the answer of its last output, which any node can read. ``"records"``:
            all its outputs with all their fields, for other GPTSwarm operations.
        task: makes the task; by default from the goal, and the screen if there is one.
        model: answers instead of the operation's own ``llm``; then usage is counted, budgets and
            rate limits apply, and no key of GPTSwarm is needed.
        adapter: LoRA adapter of ``model``.
        blocking: whether its code blocks; then it runs on another thread, one operation at a time.
            ``None``: true for the operations of the package that are known to block.
        timeout: seconds for one call.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: ``operation`` is not a GPTSwarm node.
    """

    operation: Any
    id: str = ""
    given: Given = field(default="if_alone", kw_only=True)
    sends: Sends = field(default="text", kw_only=True)

    def __post_init__(self) -> None:
        check_is(self.operation, "Node")
        self._complete(self.id or type(self.operation).__name__, [self.operation])

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        task, call = self.task(context), _Call(self, context)
        (twin,) = call.copies([self.operation])
        if self.given in ("only", "joined") or (self.given == "if_alone" and not inbox):
            twin.inputs = [with_messages(task, inbox) if self.given == "joined" else task]
        twin.predecessors = [
            SimpleNamespace(id=message.sender, outputs=decode_outputs(message, task))
            for message in inbox
        ]
        if not twin.inputs and not inbox:
            return call.reply("", "the operation has no input: no messages and no task")
        await call.finished(twin.execute())
        if self.sends == "records":
            return call.reply(encode_outputs(twin.outputs))
        if not twin.outputs:
            return call.reply("", "the operation has no output: its inputs were empty")
        return call.reply(answer(twin.outputs))


@dataclass(frozen=True, slots=True)
class GPTSwarmGraph(_Settings):
    """A GPTSwarm agent, that is any ``swarm.graph.graph.Graph``, as one node of our graphs.

    GPTSwarm's own ``run()`` executes private copies of its operations, one after another. Use it
    for agents whose operations exchange objects or communicate through their memory (the crossword
    agents). :func:`import_graph` runs other agents concurrently, and traces every operation.

    Its input is the task, with the messages of the inbox appended. The attributes are those of
    :class:`GPTSwarmNode`, and so are the errors.
    """

    agent: Any
    id: str = ""

    def __post_init__(self) -> None:
        check_is(self.agent, "Graph")
        self._complete(self.id or type(self.agent).__name__, self.agent.nodes.values())

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        call, agent = _Call(self, context), copy.copy(self.agent)
        operations = list(agent.nodes.values())
        twins = call.copies(operations)
        own = dict(zip(map(id, operations), twins, strict=True))
        agent.nodes = dict(zip(agent.nodes, twins, strict=True))
        agent.input_nodes = [own[id(node)] for node in agent.input_nodes]
        agent.output_nodes = [own[id(node)] for node in agent.output_nodes]
        if twins:
            agent.memory = twins[0].memory
        answers = await call.finished(agent.run(with_messages(self.task(context), inbox)))
        if not any(node.outputs for node in agent.output_nodes):
            return call.reply("", "the agent has no output: no operation led to one")
        return call.reply("\n".join(answer([each]) for each in answers))


# -- one call -----------------------------------------------------------------------------------


class _Call:
    """One call of a node: its private copies, and what was asked and failed in it."""

    def __init__(self, settings: _Settings, context: NodeContext) -> None:
        self.settings, self.seed = settings, context.seed
        self.loop = asyncio.get_running_loop()
        self.requests = 0
        self.prompts: list[str] = []
        self.completions: list[Completion] = []
        self._failed: Exception | None = None
        self._cut_short: dict[int, str] = {}

    def copies(self, operations: Sequence[Any]) -> list[Any]:
        """Copies of operations with one new memory. Their containers are copied, and references
        among them lead to the copies; the objects that they hold, such as a model, are shared."""
        from swarm.memory.memory import Memory

        memory = Memory()
        twins = {id(operation): object.__new__(type(operation)) for operation in operations}
        for operation in operations:
            twin, own = twins[id(operation)], vars(operation)
            shared = {id(v): v for v in own.values() if not isinstance(v, dict | list | set)}
            kept = {name: value for name, value in own.items() if name not in _REPLACED}
            vars(twin).update(copy.deepcopy(kept, shared | twins))
            twin.predecessors = [twins[id(p)] for p in operation.predecessors if id(p) in twins]
            twin.successors = [twins[id(s)] for s in operation.successors if id(s) in twins]
            twin.memory, twin.inputs, twin.outputs = memory, [], []
            self._watch(twin)
            if vars(twin).get("llm") is not None:
                twin.llm = _ModelProxy(twin.llm, self)
        return list(twins.values())

    async def finished(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the operations. Raises what GPTSwarm would print and ignore."""
        result = await (in_worker(work) if self.settings.blocking else work)
        if self._failed is not None:
            raise self._failed
        if self._cut_short:
            names = ", ".join(self._cut_short.values())
            raise TimeoutError(f"{names} did not finish in the time GPTSwarm gives an operation")
        return result

    def reply(self, content: str, error: str | None = None) -> NodeReply:
        """The reply of the node. Usage is only known for models of this library."""
        done = self.completions
        return NodeReply(
            content=content,
            error=error,
            prompt="\n\n".join(self.prompts),
            usage=sum((completion.usage for completion in done), Usage()),
            adapter=done[-1].adapter if done else None,
            logprob=done[0].logprob if len(done) == 1 else None,
            seed=self.seed,
        )

    def _watch(self, operation: Any) -> None:
        """Record the errors of the operation's ``_execute``, which GPTSwarm catches."""
        work, number, name = operation._execute, id(operation), type(operation).__name__

        async def watched(*args: Any, **kwargs: Any) -> Any:
            if self._failed is not None:
                return []  # the call has failed: do not call models any more
            try:
                result = await work(*args, **kwargs)
            except asyncio.CancelledError:
                self._cut_short[number] = name
                raise
            except Exception as failure:
                self._failed = self._failed or failure
                return []
            self._cut_short.pop(number, None)  # GPTSwarm tried again, and it worked
            return result

        operation._execute = watched


class _ModelProxy:
    """Replaces an operation's ``llm`` during one call, and records its usage.

    If the node has a model of ours, it answers; otherwise the operation's own does. Both are
    awaited on the caller's event loop, so that only one thread writes to GPTSwarm's process-wide
    counters.
    """

    def __init__(self, llm: Any, call: _Call) -> None:
        self._llm, self._call = llm, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        work = self._answer(messages, *args, **kwargs)
        if asyncio.get_running_loop() is self._call.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._call.loop))

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._call.settings.model is None:
            self._call.prompts.append(_text(messages))
            return self._llm.gen(messages, *args, **kwargs)
        if asyncio._get_running_loop() is self._call.loop:
            raise ConfigError(
                "a GPTSwarm operation calls its model with gen(), which would block the event loop "
                "for ever; pass blocking=True to the node that runs the operation"
            )
        work = self._answer(messages, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(work, self._call.loop).result()

    async def _answer(
        self,
        messages: Any,
        max_tokens: int | None = None,
        temperature: float | None = None,
        num_comps: int | None = None,
    ) -> Any:
        call, settings = self._call, self._call.settings
        if settings.model is None:
            call.prompts.append(_text(messages))
            return await self._llm.agen(messages, max_tokens, temperature, num_comps)
        samples = num_comps or 1
        requests = [
            Request(
                chat=_chat(messages),
                adapter=settings.adapter,
                temperature=_TEMPERATURE if temperature is None else temperature,
                max_tokens=max_tokens or _MAX_TOKENS,
                seed=derive(call.seed, "gptswarm", call.requests + k),
            )
            for k in range(samples)
        ]
        call.requests += samples
        completions = await settings.model.generate(requests)
        call.completions += completions
        call.prompts += [completion.prompt for completion in completions]
        texts = [completion.text for completion in completions]
        return texts[0] if samples == 1 else texts


async def in_worker(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that blocks, without blocking this event loop.

    All such coroutines run on one other thread, because some operations of GPTSwarm keep state in
    their modules. Cancellation returns at once; blocking code continues up to its next ``await``.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _worker_loop()))


@functools.cache
def _worker_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="gptswarm", daemon=True).start()
    return loop


def _blocks(operation: Any) -> bool:
    """Whether an operation is a blocking one of the package, or derived from one."""
    return any(
        kind.__name__ in _BLOCKING and kind.__module__.startswith("swarm.")
        for kind in type(operation).__mro__
    )


def _chat(messages: Any) -> tuple[ChatMessage, ...]:
    """GPTSwarm's messages as this library's; a string is a message of the user."""
    if isinstance(messages, str):
        return (ChatMessage("user", messages),)
    # Some of GPTSwarm's prompt sets return None, if they have no prompt for an operation.
    return tuple(ChatMessage(message.role, message.content or "") for message in messages)


def _text(messages: Any) -> str:
    """A prompt for the trace."""
    if isinstance(messages, str):
        return messages
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


# -- outputs of operations as the content of messages ---------------------------------------------
# GPTSwarm passes dictionaries by reference. Our messages are text, so the dictionaries are written
# as JSON under one key; any other message counts as the ``output`` of its sender.


def with_messages(task: Mapping[str, Any], inbox: Sequence[Message]) -> Record:
    """The task with the messages of the inbox appended."""
    said = [f"{m.sender}: {readable(m.content)}" for m in inbox if m.content]
    if not said:
        return dict(task)
    return {**task, "task": "\n\n".join([str(task.get("task", "")), "What others said:", *said])}


def encode_outputs(outputs: Sequence[Any]) -> str:
    """Outputs of an operation as text for :func:`decode_outputs`.

    An ``input`` that is not text is left out. It repeats the inputs of the operation, so the text
    would double in size with every operation of a chain, and no operation reads it.
    """
    kept = [
        {k: v for k, v in output.items() if k != "input" or isinstance(v, str)}
        if isinstance(output, dict)
        else output
        for output in outputs
    ]
    return _dumps({_KEY: kept})


def decode_outputs(message: Message, task: Mapping[str, Any]) -> list[Any]:
    """The outputs in a message; a message of any other node is one output of its sender."""
    if message.error is not None and not message.content:
        return []  # the node failed: in GPTSwarm, too, a failed operation has no outputs
    outputs = _decoded(message.content)
    if outputs is not None:
        return outputs
    words = {"operation": message.sender, "output": message.content}
    return [{**task, "subtask": task.get("task", ""), **words}]


def readable(content: str) -> str:
    """The content of a message as a person would read it."""
    outputs = _decoded(content)
    return content if outputs is None else "\n".join(answer([each]) for each in outputs)


def answer(outputs: Sequence[Any]) -> str:
    """The answer of the last output, which ``Graph.run`` returns."""
    last = outputs[-1]
    value = last.get("output", last) if isinstance(last, dict) else last
    if value is None:
        raise NotSerializable("the output of the operation is None")
    return value if isinstance(value, str) else _dumps(value)


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise NotSerializable(
            f"the output of a GPTSwarm operation cannot be written as JSON ({error}). Run the "
            "whole agent as one GPTSwarmGraph, whose operations can exchange objects; if it is the "
            "agent's own answer, let its last operation put text under 'output'"
        ) from error


def _decoded(content: str) -> list[Any] | None:
    if not content.startswith('{"' + _KEY):
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None  # a text that only begins like encoded outputs
    outputs = found.get(_KEY)
    return outputs if isinstance(outputs, list) and len(found) == 1 else None
