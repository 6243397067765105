"""A server of the Model Context Protocol over stdio, for test_mcp_tools.py."""

from __future__ import annotations

import os

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("numbers")


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(name="files.read")
def read(path: str) -> str:
    """Reads a file."""
    raise ToolError(f"no file {path}")


@server.tool()
def environment(name: str) -> str:
    """An environment variable."""
    return os.environ.get(name, "not set")


if __name__ == "__main__":
    server.run("stdio")
