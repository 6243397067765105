"""An endpoint that dies and comes back, with a critic, an adversary and an agent behind it."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any

from loopback import Loopback, Reply

AGENTS = ("agent_0", "agent_1", "agent_2")


class Mortal(Loopback):
    """Answers well, but for an outage: every answer is decided by the words of the question."""

    def __init__(self, *, dies_at: int = 0) -> None:
        """``dies_at``: the request at which connections are cut and refused, until :meth:`revive`;
        0: never."""
        super().__init__(self._reply, models=("critic", "adversary", "agent"))
        self.dies_at, self.asked, self.dead = dies_at, 0, False

    def _reply(self, body: dict[str, Any]) -> Reply:
        self.asked += 1
        if self.asked == self.dies_at:
            self._die()
        if self.dead:
            return Reply(cut=True)
        words = json.dumps(body["messages"])
        if body["model"] == "critic":
            return Reply(json.dumps({name: _draw(words, name) % 2 for name in AGENTS}))
        return Reply(json.dumps({"action_type": "click", "index": _draw(words, "") % 4}))

    def _die(self) -> None:
        self.dead = True
        assert self._server is not None
        self.port = self._server.sockets[0].getsockname()[1]
        self._server.close()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()

    async def revive(self) -> None:
        """Answer again, at the same address."""
        self.dead = False
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)


def _draw(words: str, name: str) -> int:
    return zlib.crc32(f"{name}:{words}".encode())
