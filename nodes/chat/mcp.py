"""Tools of a server of the Model Context Protocol (https://modelcontextprotocol.io).

Needs ``pip install 'swarm-ui[mcp]'``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from swarm_ui.addresses import is_address, redacted, secrets_of, without_credentials
from swarm_ui.errors import ConfigError, MissingExtra, ModelError
from swarm_ui.model import ToolSpec
from swarm_ui.nodes.chat.tools import TOOL_NAME, Tool


class ToolFailed(ModelError):
    """A tool of a server reported an error. The model sees its text."""


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str], *, env: Mapping[str, str] | None = None, prefix: str = ""
) -> AsyncIterator[tuple[Tool, ...]]:
    """The tools of a server, as long as the connection is open::

        async with mcp_tools(["python", "server.py"]) as tools:
            graph = CollabGraph([ChatNode("helper", model, tools=tools)])
            trace = await graph.run("What is in the file?")

    A connection belongs to one event loop, so use ``await graph.run(...)`` inside the block and not
    ``run_sync``.

    Args:
        server: a command with its arguments, which is started and communicates over stdin and
            stdout; or, as a text, the ``http://`` or ``https://`` address of a server (streamable
            HTTP).
        env: more environment variables for a command. It does not inherit those of this process,
            apart from a few such as ``PATH`` and ``HOME``.
        prefix: put before the name of each tool, so that tools of several servers differ.

    Raises:
        MissingExtra: the package mcp is not installed.
        ConfigError: the server cannot be reached or started, there is no command, or a tool has an
            unusable name.
    """
    try:
        import mcp
    except ImportError as error:
        raise MissingExtra("mcp", "using tools of an MCP server", "mcp") from error
    shown = without_credentials(server) if isinstance(server, str) else " ".join(server)
    if not shown or (isinstance(server, str) and not is_address(server)):
        raise ConfigError(
            "mcp_tools: expected an address (http://... or https://...), or a command as a list of "
            f"words, got '{shown}'"
        )
    where: Any = server
    if not isinstance(server, str):
        where = mcp.StdioServerParameters(
            command=server[0], args=[*server[1:]], env=None if env is None else dict(env)
        )
    client = mcp.Client(where)
    try:
        await client.__aenter__()
    except Exception as error:
        secrets = secrets_of(server) if isinstance(server, str) else ()
        # The cause is left out: its text may quote the address with a password or a key.
        raise ConfigError(
            f"mcp_tools: no MCP server at '{shown}': {redacted(_innermost(error), secrets)}. Check "
            "that it starts, and that it speaks the protocol"
        ) from None
    try:
        page = await client.list_tools(cursor=None)
        cards = list(page.tools)
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            cards += page.tools
        yield tuple([_tool(client, card, prefix) for card in cards])
    finally:  # without the exception, which the client would put into a group
        await client.__aexit__(None, None, None)


def _tool(client: Any, card: Any, prefix: str) -> Tool:
    loop = asyncio.get_running_loop()
    shown = prefix + "".join(c if TOOL_NAME.fullmatch(c) else "_" for c in card.name)

    async def call(arguments: Mapping[str, Any]) -> object:
        if asyncio.get_running_loop() is not loop:
            raise ConfigError(
                f"the MCP tool '{card.name}' was called in another event loop than the one that "
                "opened it; await graph.run(...) inside the block of mcp_tools"
            )
        result = await client.call_tool(card.name, dict(arguments))
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise ToolFailed(text or "the tool gave no reason")
        return text or result.structured_content or ""

    schema = msgspec.json.encode(card.input_schema).decode()
    return Tool(ToolSpec(name=shown, description=card.description or "", parameters=schema), call)


def _text(part: Any) -> str:
    """A part of a result as text; pictures and sounds are named only."""
    if part.type == "resource" and hasattr(part.resource, "text"):
        return str(part.resource.text)
    kind = getattr(part, "mime_type", None) or getattr(part, "uri", None) or "not text"
    return str(part.text) if part.type == "text" else f"[{part.type}: {kind}]"


def _innermost(error: BaseException) -> str:
    """The reason: the client raises groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
