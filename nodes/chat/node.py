"""A general node of a language model: text, structured output, tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec

from swarm_ui.agent_view import View
from swarm_ui.errors import ConfigError, ModelError, ReplyError
from swarm_ui.message import Message
from swarm_ui.model import ChatMessage, ChatModel, Request, ToolCall, check_model
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.agent import completed
from swarm_ui.nodes.chat.tools import TOOL_NAME, ReplySchema, Tool, cut_result, tools_of
from swarm_ui.observation import Observation, render
from swarm_ui.prompts import read_calls, with_schema, written_calls
from swarm_ui.prompts.quoting import cut, inside, one_line_each, without_tags
from swarm_ui.trace.records import hear

Prompt = str | Callable[[Sequence[Message], NodeContext], str | Sequence[ChatMessage]]
"""A template with fields in braces, see :data:`FIELDS`; or a function ``(inbox, context)`` that
returns the text of the user's turn, or the turns of a whole chat."""

FIELDS = {
    "goal": "the goal of the run: its question or task",
    "screen": "the screen, if the observation has one",
    "messages": "the messages of the predecessors, each in a block with the name of its sender",
    "own": "the node's own message of the last round, in a block",
    "round": "number of the round, from 1",
    "rounds": "number of rounds",
}
"""The fields of a template with their values; a missing value is an empty text."""
MODEL = "model"
"""Name under which the trace records the model's turns, as in ``"writer/model"``."""

_REPAIR = (
    "Your reply does not follow the JSON schema: {error}\n\n"
    "Reply again, with one JSON value that follows the schema, and nothing else."
)


@dataclass(frozen=True, slots=True, eq=False)
class ChatNode:
    """A node that asks a language model and sends its reply.

    The content of its message is the text of the reply; with a ``schema`` it is the JSON value, and
    :meth:`value` parses it. A node with a schema or tools has a conversation with the model. The
    trace records its turns and tool calls as calls nested in the node's call
    (``writer:0/model:0``, ``writer:0/search:1``).

    If the run has listeners and the model can stream, pieces of replies are
    :class:`~swarm_ui.events.Token` events.

    Raises:
        ConfigError: the prompt, the schema or a tool cannot be used, or a number is out of range.
    """

    id: str
    model: ChatModel
    _: KW_ONLY
    system: str = ""
    """Text of the system turn: the role."""
    prompt: Prompt | None = None
    """A template, such as ``"Review this for {goal}: {messages}"`` (the fields are in
    :data:`~swarm_ui.nodes.chat.node.FIELDS`); or a function ``(inbox, context)`` that
    returns a text or the turns of a chat. ``None``: the goal, the screen, its own last message and
    those of its predecessors."""
    schema: Any = None
    """Required form of the reply: a msgspec or pydantic type, a dataclass, or another type that
    msgspec can decode. The schema is in the prompt, and an endpoint is asked to enforce it, unless
    the node has tools."""
    tools: Sequence[Tool | Callable[..., object]] = ()
    """Tools that the model may call: Python functions with annotated parameters, or
    :class:`Tool`."""
    adapter: str | None = None
    """Name of its LoRA adapter; ``None``: the base model."""
    temperature: float | None = None
    """Sampling temperature; ``None``: that of the endpoint, and 0 for a model in this process."""
    max_tokens: int | None = None
    """Maximum number of tokens of each reply; ``None``: that of the endpoint, and 1024 for a model
    in this process."""
    timeout: float | None = None
    """Seconds for the whole conversation; ``None``: the limit of the run."""
    max_tool_calls: int = 8
    """Tools that one conversation may call. A model that still calls tools when it was told that
    none are left fails the node."""
    max_repairs: int = 2
    """Maximum number of times that a reply that does not match the schema is sent back with the
    error. After that the node fails, with a :class:`~swarm_ui.errors.ReplyError`."""
    _schema: ReplySchema | None = field(init=False, repr=False)
    _tools: dict[str, Tool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where = f"chat node '{self.id}'"
        check_model(where, self.model)
        if isinstance(self.prompt, str):
            try:
                self.prompt.format_map(dict.fromkeys(FIELDS, ""))
            except (ValueError, LookupError, AttributeError) as error:
                raise ConfigError(
                    f"{where}: the prompt cannot be filled in: {error}. Its fields are "
                    f"{', '.join(f'{{{name}}}' for name in FIELDS)}. Double literal braces, and "
                    "give a function (inbox, context) for anything else"
                ) from error
        bounds = {"temperature": 0, "max_tokens": 1, "max_tool_calls": 0, "max_repairs": 0}
        for name, least in bounds.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{where}: {name} must be >= {least}, got {value}")
        schema = None if self.schema is None else ReplySchema(self.schema, where)
        object.__setattr__(self, "_schema", schema)
        object.__setattr__(self, "_tools", tools_of(self.tools))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        chat = _first_chat(self.system, self.prompt, inbox, context)
        return await _Conversation(self, chat, inbox, context).finish()

    def value(self, message: Message) -> Any:
        """The value of a message of this node: of the type of its schema, else the text. Raises
        ``ReplyError`` if it does not follow the schema, and ``ModelError`` if the node failed."""
        if message.error is not None:
            raise ModelError(f"'{message.sender}' failed, so it has no value: {message.error}")
        return self._schema.value(message.content) if self._schema else message.content


class _Conversation:
    """One conversation of a node with its model: its turns so far, and the calls that are left."""

    def __init__(
        self,
        node: ChatNode,
        chat: Sequence[ChatMessage],
        inbox: Sequence[Message],
        context: NodeContext,
    ) -> None:
        self._node, self._context = node, context
        self._tools, self._schema = node._tools, (schema := node._schema)
        self._chat = list(chat if schema is None else with_schema(chat, schema.text))
        self._heard = list(inbox)
        self._left = node.max_tool_calls

    async def finish(self) -> NodeReply:
        """The reply of the node."""
        if not self._tools and self._schema is None:
            return await self._ask(self._heard, self._context)
        repairs = 0
        while True:
            span = "chat", self._node.model.name
            said = (await self._context.step(MODEL, self._heard, self._ask, span=span)).message
            self._heard.append(said)
            text, calls = self._read(said)
            self._chat.append(ChatMessage("assistant", text, calls=calls))
            if calls and self._left < 0:
                raise ReplyError(
                    f"the model called '{calls[0].name}' after its {self._node.max_tool_calls} "
                    "tool calls were used up; expected a reply. Raise max_tool_calls"
                )
            for call in calls:
                await self._call(said, call)
            if calls:
                continue
            try:
                # Prompts, usage and seeds are those of the calls inside.
                return NodeReply(content=text if self._schema is None else self._schema.find(text))
            except ReplyError as error:
                repairs += 1
                if repairs > self._node.max_repairs:
                    raise ReplyError(
                        f"no reply matched the schema after {repairs} attempts; the last error: "
                        f"{error}"
                    ) from error
                self._chat.append(ChatMessage("user", _REPAIR.format(error=error)))

    async def _ask(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        """Ask the model for the next turn. ``context`` is that of the call that records it."""
        node, schema = self._node, self._schema
        request = Request(
            chat=tuple(self._chat),
            adapter=node.adapter,
            temperature=node.temperature,
            max_tokens=node.max_tokens,
            seed=context.seed,
            # With tools, a server that enforces a schema would not let the model call one.
            json_schema=None if schema is None or self._tools else schema.text,
            tools=tuple(tool.spec for tool in self._tools.values()),
        )
        request = context.pinned(node.model, request)
        completion = await completed(node.model, request, context)
        calls, text = completion.calls, completion.text
        return NodeReply(
            content=written_calls(text, calls) if calls else text,
            completion=completion,
            temperature=request.temperature,
            seed=request.seed,
        )

    def _read(self, said: Message) -> tuple[str, tuple[ToolCall, ...]]:
        """The text of a turn, and the calls in it, each with an id of its own."""
        if not self._tools:
            return said.content, ()
        text, calls = read_calls(said.content)
        known = ["", *(call.id for turn in self._chat for call in turn.calls)]
        for k, call in enumerate(calls):
            known.append(f"call_{said.round}_{k}" if call.id in known else call.id)
        ids = known[len(known) - len(calls) :]
        named = [msgspec.structs.replace(c, id=id) for c, id in zip(calls, ids, strict=True)]
        return text, tuple(named)

    async def _call(self, said: Message, call: ToolCall) -> None:
        """Call a tool; the model sees the result, or why there is none."""
        self._left -= 1
        left = self._left >= 0

        async def run(inbox: object, context: object) -> NodeReply:
            if not left:
                raise ReplyError("no tool calls are left; reply without a tool, with what you know")
            tool = self._tools.get(call.name)
            if tool is None:
                known = ", ".join(self._tools)
                raise ReplyError(f"there is no tool '{call.name}'; expected one of: {known}")
            return NodeReply(content=await tool.run(call.arguments))

        name = call.name if TOOL_NAME.fullmatch(call.name) else "unknown"
        made = await self._context.step(
            name, [said], run, span=("execute_tool", name), arguments=call.arguments, tolerant=True
        )
        self._heard.append(result := made.message)
        text = result.content if result.error is None else cut_result(f"error: {result.error}")
        self._chat.append(ChatMessage("tool", text, answers=call.id))


# -- the first prompt ----------------------------------------------------------------------------


def _first_chat(
    system: str, prompt: Prompt | None, inbox: Sequence[Message], context: NodeContext
) -> tuple[ChatMessage, ...]:
    """The chat that a node begins with. Without a prompt, it holds the goal, the screen, the node's
    last message and the messages of its predecessors."""
    before = (ChatMessage("system", system),) if system else ()
    if callable(prompt):
        asked = prompt(inbox, context)
        return (*before, *([ChatMessage("user", asked)] if isinstance(asked, str) else asked))
    fields = _fields(inbox, context)
    if prompt is None:
        parts = [fields[name] for name in ("goal", "screen", "own", "messages")]
        text = "\n\n".join(part for part in parts if part)
    else:
        text = prompt.format_map(fields)
    return (*before, ChatMessage("user", text))


def _fields(inbox: Sequence[Message], context: NodeContext) -> dict[str, str]:
    own = [_block(message, context) for message in inbox if message.sender == context.node]
    heard = [_block(message, context) for message in inbox if message.sender != context.node]
    return {
        "goal": without_tags(context.observation.goal),
        "screen": _screen(context.observation),
        "messages": "\n\n".join(heard),
        "own": "\n\n".join(own),
        "round": str(context.round + 1),
        "rounds": str(context.rounds),
    }


def _block(message: Message, context: NodeContext) -> str:
    heard = hear(message, View(context.observation), listener=context.node)
    speaker = "Your previous answer" if heard.own else f"{inside(heard.sender)} said"
    return f"{speaker}:\n<said>\n{without_tags(cut(heard.content.strip()))}\n</said>"


def _screen(observation: Observation) -> str:
    if not observation.elements and not observation.app:
        return ""
    front = f"(in front: {inside(observation.app)})\n" if observation.app else ""
    rows = without_tags(render(one_line_each(observation)))
    return f"On the screen:\n<screen>\n{front}{rows}\n</screen>"
