"""A GPTSwarm operation, or a whole GPTSwarm agent, as a node."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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

_MAX_TOKENS, _TEMPERATURE = 1000, 0.2
"""The defaults of ``swarm.llm.llm.LLM``."""
_BLOCKING = frozenset({"CodeWriting", "FileAnalyse", "GenerateQuery", "UnitestGeneration",
                       "WebSearch"})  # fmt: skip
"""Operations of the package that block inside their async code: downloads, searches, files,
programs. Some share state of their modules, so only one may run at a time."""
_KEY = "gptswarm"


class NotSerializable(SwarmError):
    """An operation answered with something that cannot be written as text."""


def check_is(value: Any, *kinds: str) -> None:
    """Check that a value is a GPTSwarm ``Node``, ``Graph`` or ``Swarm``. Raises ``MissingExtra`` if
    GPTSwarm, or something it needs, is not installed, and ``ConfigError`` for other objects."""
    try:
        found = [getattr(import_module(f"swarm.graph.{kind.lower()}"), kind) for kind in kinds]
    except ImportError as error:
        raise MissingExtra("gptswarm", "GPTSwarm interop", error.name or "swarm") from error
    if not isinstance(value, tuple(found)):
        got = type(value).__name__
        raise ConfigError(f"expected a GPTSwarm {' or '.join(kinds)}, got a {got}")


def task_of(context: NodeContext) -> Record:
    """The task as in GPTSwarm's own examples: the goal, and the screen if there is one."""
    screen = context.observation
    text = f"{screen.goal}\n\n{render(screen)}" if screen.elements else screen.goal
    return {"task": text, "files": [], "GT": ""}


@dataclass(frozen=True, slots=True)
class GPTSwarmNode:
    """A GPTSwarm operation (``Node``), or a whole agent (``Graph``), as a node of our graphs.

    Each call runs a private copy, with the messages of the predecessors as its inputs. An error of
    an operation is an error of this node. In later rounds its own last message is the first input.
    A whole agent runs its operations one after another, and its input is the task, with the
    messages appended; use it for operations that exchange objects or communicate through their
    memory (the crossword agents). :func:`import_graph` gives each operation a node instead.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: ``operation`` is neither a GPTSwarm node nor a graph.
    """

    operation: Any
    """Its edges are not read."""
    id: str = ""
    """Name in a graph; ``""``: the operation's class."""
    _: KW_ONLY
    given: Given = "if_alone"
    """When an operation's input is the task. ``"if_alone"``: when the inbox is empty; ``"never"``;
    ``"only"``: always, and without the messages, like an input node of GPTSwarm; ``"joined"``:
    always, with the messages appended to the task."""
    sends: Sends = "text"
    """``"text"``: the answer of its last output, which any node can read. ``"records"``: all its
    outputs with all their fields, for other GPTSwarm operations."""
    task: MakeTask = task_of
    """Makes the task; by default from the goal, and the screen if there is one."""
    model: ChatModel | None = None
    """Answers instead of the operation's own ``llm``; then usage is counted, budgets and rate
    limits apply, and no key of GPTSwarm is needed."""
    adapter: str | None = None
    """LoRA adapter of ``model``."""
    blocking: bool | None = None
    """Whether its code blocks; then it runs on another thread, one operation at a time. ``None``:
    true for the operations of the package that are known to block."""
    timeout: float | None = None
    """Seconds for one call."""

    def __post_init__(self) -> None:
        check_is(self.operation, "Node", "Graph")
        object.__setattr__(self, "id", self.id or type(self.operation).__name__)
        if self.blocking is None:
            object.__setattr__(self, "blocking", any(map(_blocks, operations_of(self.operation))))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        task, call = self.task(context), _Call(self, context)
        twin = call.private(self.operation)
        if hasattr(twin, "output_nodes"):
            answers = await call.finished(twin.run(with_messages(task, inbox)))
            if not any(node.outputs for node in twin.output_nodes):
                return call.reply("", "the agent has no output: no operation led to one")
            return call.reply("\n".join(answer([each]) for each in answers))
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


def operations_of(operation: Any) -> list[Any]:
    """The operations of an agent; an operation alone."""
    whole = hasattr(operation, "output_nodes")
    return list(operation.nodes.values()) if whole else [operation]


class _Call:
    """One call of a node: what was asked and failed in it."""

    def __init__(self, node: GPTSwarmNode, context: NodeContext) -> None:
        self.node, self.seed = node, context.seed
        self.loop = asyncio.get_running_loop()
        self.requests = 0
        self.prompts: list[str] = []
        self.completions: list[Completion] = []
        self._failed: Exception | None = None
        self._unfinished: dict[int, str] = {}

    def private(self, operation: Any) -> Any:
        """A copy with a memory of its own. Its containers are copied; the objects that it holds,
        such as its prompts, are shared."""
        from swarm.memory.memory import Memory

        parts, memory = [*operations_of(operation), operation], Memory()
        memo: dict[int, Any] = {}
        for part in parts:
            held = [v for v in vars(part).values() if not isinstance(v, dict | list | set)]
            near = [*getattr(part, "predecessors", ()), *getattr(part, "successors", ())]
            memo |= {id(each): each for each in (*held, *near)}
        for part in parts:
            memo.pop(id(part), None)
            memo[id(part.memory)] = memory
            if (llm := vars(part).get("llm")) is not None:
                memo[id(llm)] = _ModelProxy(llm, self)
        twin = copy.deepcopy(operation, memo)
        for part in operations_of(twin):
            part.inputs, part.outputs = [], []
            self._watch(part)
        return twin

    async def finished(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the operations. Raises what GPTSwarm would print and ignore."""
        result = await (in_worker(work) if self.node.blocking else work)
        if self._failed is not None:
            raise self._failed
        if self._unfinished:
            names = ", ".join(self._unfinished.values())
            raise TimeoutError(f"{names} did not finish in the time GPTSwarm gives an operation")
        return result

    def reply(self, content: str, error: str | None = None) -> NodeReply:
        """The reply of the node. Usage is only known for models of this library."""
        done = self.completions
        completion = Completion(
            text=content,
            prompt="\n\n".join(self.prompts),
            usage=sum((each.usage for each in done), Usage()),
            adapter=done[-1].adapter if done else None,
            logprob=done[0].logprob if len(done) == 1 else None,
        )
        return NodeReply(
            content=content,
            error=error,
            completion=completion if self.prompts else None,
            seed=self.seed,
        )

    def _watch(self, operation: Any) -> None:
        """Record the errors of the operation's ``_execute``, which GPTSwarm catches."""
        work = operation._execute

        async def watched(*args: Any, **kwargs: Any) -> Any:
            if self._failed is not None:
                return []  # the call has failed: do not call models any more
            self._unfinished[id(operation)] = type(operation).__name__
            try:
                result = await work(*args, **kwargs)
            except Exception as failure:
                self._failed, result = failure, []
            del self._unfinished[id(operation)]  # stays after a cancellation
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

    async def agen(self, *args: Any, **kwargs: Any) -> Any:
        work = self._answer(*args, **kwargs)
        if asyncio.get_running_loop() is self._call.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._call.loop))

    def gen(self, *args: Any, **kwargs: Any) -> Any:
        if self._call.node.model is None:
            self._call.prompts.append(_text(args[0]))
            return self._llm.gen(*args, **kwargs)
        if asyncio._get_running_loop() is self._call.loop:
            raise ConfigError(
                "a GPTSwarm operation calls its model with gen(), which would block the event loop "
                "for ever; pass blocking=True to the node that runs the operation"
            )
        work = self._answer(*args, **kwargs)
        return asyncio.run_coroutine_threadsafe(work, self._call.loop).result()

    async def _answer(
        self,
        messages: Any,
        max_tokens: int | None = None,
        temperature: float | None = None,
        num_comps: int | None = None,
    ) -> Any:
        call, node = self._call, self._call.node
        if node.model is None:
            call.prompts.append(_text(messages))
            return await self._llm.agen(messages, max_tokens, temperature, num_comps)
        requests = [
            Request(
                chat=_chat(messages),
                adapter=node.adapter,
                temperature=_TEMPERATURE if temperature is None else temperature,
                max_tokens=max_tokens or _MAX_TOKENS,
                seed=derive(call.seed, "gptswarm", call.requests + k),
            )
            for k in range(num_comps or 1)
        ]
        call.requests += len(requests)
        completions = await node.model.generate(requests)
        call.completions += completions
        call.prompts += [completion.prompt for completion in completions]
        texts = [completion.text for completion in completions]
        return texts[0] if len(texts) == 1 else texts


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
    kinds = [kind for kind in type(operation).__mro__ if kind.__module__.startswith("swarm.")]
    return any(kind.__name__ in _BLOCKING for kind in kinds)


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
    words = {"operation": message.sender, "output": message.content}
    own = [{**task, "subtask": task.get("task", ""), **words}]
    return own if (outputs := _decoded(message.content)) is None else outputs


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
            "whole agent as one GPTSwarmNode, whose operations can exchange objects; if it is the "
            "agent's own answer, let its last operation put text under 'output'"
        ) from error


def _decoded(content: str) -> list[Any] | None:
    try:
        found = json.loads(content) if content.startswith('{"' + _KEY) else {}
    except (ValueError, RecursionError):
        return None  # a text that only begins like encoded outputs
    outputs = found.get(_KEY)
    return outputs if isinstance(outputs, list) and len(found) == 1 else None
