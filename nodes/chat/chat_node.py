"""A general node of a language model: text, structured output, tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Message
from swarm_ui.model import ChatModel, check_model
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.chat.chat_prompt import Prompt, check_template, first_chat
from swarm_ui.nodes.chat.conversation import Conversation, Terms
from swarm_ui.nodes.chat.json_schema import ReplySchema
from swarm_ui.nodes.chat.tools import Tool, tools_of


@dataclass(frozen=True, slots=True, eq=False)
class ChatNode:
    """A node that asks a language model and sends its reply.

    The content of its message is the text of the reply; with a ``schema`` it is the JSON value, and
    :meth:`value` parses it. A node with a schema or tools has a conversation with the model, whose
    turns and tool calls are in the trace as calls inside its own (``writer:0/model:0``,
    ``writer:0/search:1``; :mod:`swarm_ui.nodes.inner_calls`).

    If the run has listeners and the model can stream, pieces of replies are
    :class:`~swarm_ui.engine.events.Token` events.

    Raises:
        ConfigError: the prompt, the schema or a tool cannot be used, or a number is out of range.
        MissingExtra: the schema is a mapping, and jsonschema is not installed.
    """

    id: str
    model: ChatModel
    _: KW_ONLY
    system: str = ""
    """Text of the system turn: the role."""
    prompt: Prompt | None = None
    """A template, such as ``"Review this for {goal}: {messages}"`` (the fields are in
    :data:`~swarm_ui.nodes.chat.chat_prompt.FIELDS`); or a function ``(inbox, context)`` that
    returns a text or the turns of a chat. ``None``: the goal, the screen, its own last message and
    those of its predecessors."""
    schema: Any = None
    """Required form of the reply: a JSON schema as a mapping (extra ``schema``), a msgspec or
    pydantic type, a dataclass, or another type that msgspec can decode. The schema is in the
    prompt, and an endpoint is asked to enforce it, unless the node has tools."""
    tools: Sequence[Tool | Callable[..., object]] = ()
    """Tools that the model may call: Python functions with annotated parameters, or
    :class:`Tool`."""
    adapter: str | None = None
    """Name of its LoRA adapter; ``None``: the base model."""
    temperature: float = 0.0
    max_tokens: int = 1024
    """Maximum number of tokens of each reply."""
    timeout: float | None = None
    """Seconds for the whole conversation; ``None``: the limit of the run."""
    max_tool_calls: int = 8
    """Tools that one conversation may call. A model that still calls tools when it was told that
    none are left fails the node."""
    max_repairs: int = 2
    """Maximum number of times that a reply that does not match the schema is sent back with the
    error. After that the node fails, with a :class:`~swarm_ui.errors.ReplyError`."""
    _terms: Terms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where = f"chat node '{self.id}'"
        check_model(where, self.model)
        check_template(self.prompt, where)
        for name, least in (("max_tokens", 1), ("max_tool_calls", 0), ("max_repairs", 0)):
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"{where}: {name} must be >= {least}, got {value}")
        if not self.temperature >= 0:
            raise ConfigError(f"{where}: temperature must be >= 0, got {self.temperature}")
        schema = None if self.schema is None else ReplySchema(self.schema, where)
        terms = Terms(
            model=self.model,
            adapter=self.adapter,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            tools=tools_of(self.tools),
            max_tool_calls=self.max_tool_calls,
            schema=schema,
            max_repairs=self.max_repairs,
        )
        object.__setattr__(self, "_terms", terms)

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        chat = first_chat(self.system, self.prompt, inbox, context)
        return await Conversation(self._terms, chat, inbox, context).finish()

    def value(self, message: Message) -> Any:
        """The value of a message of this node: of the type of its schema, else the text.

        Raises:
            ReplyError: the message does not follow the schema.
            ModelError: the node failed, so the message has no value.
        """
        if message.error is not None:
            raise ModelError(f"'{message.sender}' failed, so it has no value: {message.error}")
        schema = self._terms.schema
        return message.content if schema is None else schema.value(message.content)
