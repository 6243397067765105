"""The conversation of a chat node with its model, in one call of the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from swarm_ui.errors import ReplyError
from swarm_ui.message import Message
from swarm_ui.model import ChatMessage, ChatModel, Request, ToolCall
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.chat.json_schema import ReplySchema
from swarm_ui.nodes.chat.tools import TOOL_NAME, Tool, cut_result
from swarm_ui.nodes.completion import completed
from swarm_ui.nodes.inner_calls import InnerCalls
from swarm_ui.prompts import read_calls, with_schema, written_calls

MODEL = "model"
"""Name of the model's turns in the trace: the node ``"writer/model"``."""

_REPAIR = (
    "Your reply does not follow the JSON schema: {error}\n\n"
    "Reply again, with one JSON value that follows the schema, and nothing else."
)
_NO_CALLS_LEFT = "no tool calls are left; reply without a tool, with what you know"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The settings of a conversation; see :class:`~.chat_node.ChatNode`."""

    model: ChatModel
    adapter: str | None
    temperature: float
    max_tokens: int
    tools: tuple[Tool, ...]
    max_tool_calls: int
    schema: ReplySchema | None
    max_repairs: int


class Conversation:
    """One conversation: its turns so far, and the calls and repairs that are left."""

    def __init__(
        self,
        terms: Terms,
        chat: Sequence[ChatMessage],
        inbox: Sequence[Message],
        context: NodeContext,
    ) -> None:
        schema = terms.schema
        self._terms, self._context, self._schema = terms, context, schema
        self._tools = {tool.name: tool for tool in terms.tools}
        self._chat = list(chat if schema is None else with_schema(chat, schema.text))
        self._heard = list(inbox)
        self._left = terms.max_tool_calls
        self._turns = 0

    async def finish(self) -> NodeReply:
        """The reply of the node.

        Raises:
            ReplyError: the model's replies do not follow the schema, or it calls tools although
                none are left.
            ModelError: the model cannot answer.
        """
        if not self._tools and self._schema is None:
            return await self._ask(self._context)
        inner, repairs, refused = InnerCalls(self._context), 0, False
        while True:
            said = await inner.make(MODEL, self._heard, self._ask)
            self._heard.append(said)
            text, calls = self._read(said)
            self._chat.append(ChatMessage("assistant", text, calls=calls))
            if calls:
                if refused:
                    most = self._terms.max_tool_calls
                    raise ReplyError(
                        f"the model called '{calls[0].name}' after its {most} tool calls were used "
                        "up; expected a reply. Raise max_tool_calls"
                    )
                refused = await self._call(inner, said, calls)
                continue
            if self._schema is None:
                return self._reply(text)
            try:
                return self._reply(self._schema.find(text))
            except ReplyError as error:
                repairs += 1
                if repairs > self._terms.max_repairs:
                    raise ReplyError(
                        f"no reply matched the schema after {repairs} attempts; the last error: "
                        f"{error}"
                    ) from error
                self._chat.append(ChatMessage("user", _REPAIR.format(error=error)))

    # -- the model ----------------------------------------------------------------------------

    async def _ask(self, context: NodeContext) -> NodeReply:
        """Ask the model for the next turn. ``context`` is that of the call that records it."""
        terms, schema = self._terms, self._schema
        request = Request(
            chat=tuple(self._chat),
            adapter=terms.adapter,
            temperature=terms.temperature,
            max_tokens=terms.max_tokens,
            seed=context.seed,
            run=context.run,
            # With tools, a server that enforces a schema would not let the model call one.
            json_schema=None if schema is None or self._tools else schema.text,
            tools=tuple([tool.spec for tool in self._tools.values()]),
        )
        if self._turns == 0 and context is not self._context:  # an edit of the outer call's prompt
            request = self._context.session.rewritten(self._context.message_id, request)
        self._turns += 1
        request = context.final(terms.model, request)
        completion = await completed(terms.model, request, context)
        return NodeReply(
            content=written_calls(completion.text, completion.calls)
            if completion.calls
            else completion.text,
            model=completion.model or terms.model.name,
            adapter=completion.adapter,
            logprob=completion.logprob,
            usage=completion.usage,
            prompt=completion.prompt,
            temperature=request.temperature,
            seed=request.seed,
            sampled=completion.sampled,
        )

    def _read(self, said: Message) -> tuple[str, tuple[ToolCall, ...]]:
        """The text of a turn, and the calls in it, each with an id."""
        if not self._tools:
            return said.content, ()
        text, calls = read_calls(said.content)
        known = {call.id for turn in self._chat for call in turn.calls}
        named: list[ToolCall] = []
        for k, call in enumerate(calls):
            if not call.id or call.id in known:
                call = msgspec.structs.replace(call, id=f"call_{said.round}_{k}")
            known.add(call.id)
            named.append(call)
        return text, tuple(named)

    def _reply(self, content: str) -> NodeReply:
        # Prompts, usage and seeds are those of the calls inside.
        last = self._heard[-1]
        return NodeReply(content=content, adapter=last.adapter)

    # -- tools --------------------------------------------------------------------------------

    async def _call(self, inner: InnerCalls, said: Message, calls: Sequence[ToolCall]) -> bool:
        """Make the calls of one turn, in order; whether one was refused because none are left."""
        refused = False
        for call in calls:
            refused = refused or self._left <= 0
            self._left -= 1
            left = not refused

            async def run(
                context: NodeContext, call: ToolCall = call, left: bool = left
            ) -> NodeReply:
                return NodeReply(content=await self._run(call, left))

            result = await inner.make(
                _node_name(call.name), [said], run, arguments=call.arguments, tolerant=True
            )
            self._heard.append(result)
            text = result.content if result.error is None else cut_result(f"error: {result.error}")
            self._chat.append(ChatMessage("tool", text, answers=call.id))
        return refused

    async def _run(self, call: ToolCall, left: bool) -> str:
        if not left:
            raise ReplyError(_NO_CALLS_LEFT)
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise ReplyError(f"there is no tool '{call.name}'; expected one of: {known}")
        return await tool.run(call.arguments)


def _node_name(tool: str) -> str:
    """The name of a tool in the trace; a model may call anything."""
    return tool if TOOL_NAME.fullmatch(tool) else "unknown"
