"""A server that speaks vLLM's protocol without a model: adapters are loaded and named in replies.

It answers as vLLM 0.32 was seen to answer (``test_vllm_server.py`` asks the real one):
``/v1/models`` lists the base model and the adapters with their folders, an unknown name is a 404,
``/v1/load_lora_adapter`` and ``/v1/unload_lora_adapter`` answer in words, and loading a name twice
is a 400, unless ``load_inplace`` is set. It answers every chat with a click on element 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from loopback import Loopback, Reply, Seen, in_a_thread

REPLY = 'Reason: it is there.\nAction: {"action_type": "click", "index": 0}'


class StandIn(Loopback):
    """Listens on a free port of 127.0.0.1 while the ``with`` lasts, in a thread of its own."""

    def __init__(
        self,
        base: str,
        adapters: Mapping[str, str] = MappingProxyType({}),
        *,
        tokens: Callable[[Sequence[Mapping[str, str]]], list[int]] | None = None,
        can_load: bool = True,
        reply: Callable[[Mapping[str, Any]], str] = lambda body: REPLY,
    ) -> None:
        """
        Args:
            base: served name of the base model.
            adapters: path by served name.
            tokens: the tokens of the turns of a chat; ``None``: there is no such route.
            can_load: whether adapters can be loaded while it runs.
            reply: what it answers, from the body of a chat.
        """
        super().__init__(lambda body: Reply(reply(body)))
        self.base, self._tokens, self._can_load = base, tokens, can_load
        self.adapters = dict(adapters)
        """Path by served name."""
        self.loads: list[str] = []
        """The adapters that were loaded, in order; each time counts."""
        self.asked: list[str] = []
        """The model that each chat named."""
        self.dead = False
        """Whether it breaks every connection, as a server that was killed."""
        self.address = ""
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self._running.enter_context(in_a_thread(self))
        self.address = self.url.removesuffix("/v1")
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def restart(self) -> None:
        """Begin anew: adapters that were loaded are forgotten."""
        self.adapters.clear()
        self.dead = False

    def other(self, seen: Seen) -> Reply | None:
        if self.dead:
            raise ConnectionResetError
        path, body = seen.path, seen.body
        if path == "/v1/models":
            served = [(self.base, self.base, None)]
            served += [(name, path, self.base) for name, path in self.adapters.items()]
            listed = [{"id": i, "object": "model", "root": r, "parent": p} for i, r, p in served]
            return Reply(body=json.dumps({"object": "list", "data": listed}))
        if path == "/tokenize" and self._tokens is not None:
            return Reply(body=json.dumps({"tokens": self._tokens(body["messages"])}))
        if path == "/v1/load_lora_adapter" and self._can_load:
            return self._loaded(body["lora_name"], body["lora_path"], body.get("load_inplace"))
        if path == "/v1/unload_lora_adapter":
            name = body["lora_name"]
            if self.adapters.pop(name, None) is None:
                return _error(f"The lora adapter '{name}' cannot be found.", 404)
            return Reply(body=f"Success: LoRA adapter '{name}' removed successfully.")
        if path != "/v1/chat/completions":
            return _error("Not Found", 404)
        if body["model"] not in (self.base, *self.adapters):
            return _error(f"The model `{body['model']}` does not exist.", 404)
        self.asked.append(body["model"])
        return None

    def _loaded(self, name: str, path: str, again: object) -> Reply:
        if not Path(path).is_absolute():
            return _error("a path that the server cannot find", 400)
        if name in self.adapters and not again:
            return _error(f"The lora adapter '{name}' has already been loaded.", 400)
        self.adapters[name] = path
        self.loads.append(name)
        return Reply(body=f"Success: LoRA adapter '{name}' added successfully.")


def _error(message: str, code: int) -> Reply:
    told = {"message": message, "type": "BadRequestError", "code": code}
    return Reply(status=code, body=json.dumps({"error": told}))
