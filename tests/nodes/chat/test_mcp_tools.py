"""Tools of a server of the Model Context Protocol, which runs as a process beside the test."""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest

from swarm_ui import CollabGraph, ConfigError, MissingExtra
from swarm_ui.nodes import ChatNode, ScriptedModel, mcp_tools

SERVER = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[mcp\]"):
        async with mcp_tools(SERVER):
            pass


async def test_a_password_or_a_key_in_the_address_is_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Client:
        def __init__(self, address: str) -> None:
            self.address = address

        async def __aenter__(self) -> None:
            raise OSError(f"401 Unauthorized for url '{self.address}'")

    monkeypatch.setitem(sys.modules, "mcp", SimpleNamespace(Client=Client))
    address = "http://me:pa55word@host/mcp?key=k3y-of-mine"
    with pytest.raises(ConfigError, match=r"at 'http://host/mcp': OSError: 401") as caught:
        async with mcp_tools(address):
            pass
    shown = "".join(traceback.format_exception(caught.value))
    assert "pa55word" not in shown and "k3y-of-mine" not in shown


@pytest.mark.slow
class TestServer:
    """Needs the package mcp, and starts servers."""

    @pytest.fixture(autouse=True)
    def needs_mcp(self) -> None:
        pytest.importorskip("mcp", reason="needs the package mcp: pip install 'swarm-ui[mcp]'")

    async def test_its_tools_are_called(self) -> None:
        replies = [
            '{"tool": "add", "arguments": {"a": 1}}',
            '{"tool": "files_read", "arguments": {"path": "x"}}',
            '{"tool": "add", "arguments": {"a": "one"}}',
            '{"tool": "environment", "arguments": {"name": "SECRET_OF_TESTS"}}',
            "done",
        ]
        async with mcp_tools(SERVER, env={"GIVEN": "yes"}) as tools:
            assert [tool.name for tool in tools] == ["add", "files_read", "environment"]
            graph = CollabGraph([ChatNode("calc", ScriptedModel(replies), tools=tools)])
            trace = await graph.run("1 + 2")
        assert trace.message("calc:0").content == "done"
        results = [(m.content, m.error) for m in trace.messages if m.sender != "calc/model"][1:]
        assert results[0] == ("3", None)
        assert "no file x" in str(results[1][1]) and "ToolFailed" in str(results[1][1])
        assert results[2][1] is not None and "a" in results[2][1]
        assert results[3] == ("not set", None)
        assert "Adds two numbers." in trace.calls[1].prompt

    async def test_an_error_inside_the_block_is_raised_as_it_is(self) -> None:
        with pytest.raises(ZeroDivisionError):
            async with mcp_tools(SERVER, prefix="n_") as tools:
                assert tools[0].name == "n_add"
                raise ZeroDivisionError

    async def test_a_connection_is_not_used_from_another_event_loop(self) -> None:
        async with mcp_tools(SERVER) as tools:
            model = ScriptedModel(['{"tool": "add", "arguments": {"a": 1}}'])
            graph = CollabGraph([ChatNode("calc", model, tools=tools)])
            with pytest.raises(ConfigError, match="another event loop"):
                await asyncio.to_thread(graph.run_sync, "1 + 2")

    @pytest.mark.parametrize(
        ("server", "expected"),
        [
            (["/nowhere/server"], "no MCP server at '/nowhere/server'"),
            ([sys.executable, "-c", "print('hello')"], "no MCP server at"),
            ("python server.py", "expected an address"),
        ],
    )
    async def test_what_is_no_server_is_an_error(
        self, server: str | list[str], expected: str
    ) -> None:
        with pytest.raises(ConfigError, match=expected):
            async with asyncio.timeout(60), mcp_tools(server):
                pass
