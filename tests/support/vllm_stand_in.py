"""A server that speaks vLLM's protocol without a model: adapters are loaded and named in replies.

It answers as vLLM 0.32 was seen to answer (``test_vllm_server.py`` asks the real one):
``/v1/models`` lists the base model and the adapters with their folders, an unknown name is a 404,
``/v1/load_lora_adapter`` and ``/v1/unload_lora_adapter`` answer in words, and loading a name twice
is a 400, unless ``load_inplace`` is set. It answers every chat with a click on element 0.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

REPLY = 'Reason: it is there.\nAction: {"action_type": "click", "index": 0}'


class StandIn:
    """Listens on a free port of 127.0.0.1 while the ``with`` lasts."""

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
        self.base, self._tokens, self._can_load, self._reply = base, tokens, can_load, reply
        self.adapters = dict(adapters)
        """Path by served name."""
        self.loads: list[str] = []
        """The adapters that were loaded, in order; each time counts."""
        self.asked: list[str] = []
        """The model that each chat named."""
        self.dead = False
        """Whether it breaks every connection, as a server that was killed."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def restart(self) -> None:
        """Begin anew: adapters that were loaded are forgotten."""
        self.adapters.clear()
        self.dead = False

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, object]:
        """Status, and a JSON document or words."""
        if path == "/tokenize" and self._tokens is not None:
            return 200, {"tokens": self._tokens(body["messages"])}
        if path == "/v1/load_lora_adapter" and self._can_load:
            name = body["lora_name"]
            if not Path(body["lora_path"]).is_absolute():
                return 400, _error("a path that the server cannot find", 400)
            if name in self.adapters and not body.get("load_inplace"):
                return 400, _error(f"The lora adapter '{name}' has already been loaded.", 400)
            self.adapters[name] = body["lora_path"]
            self.loads.append(name)
            return 200, f"Success: LoRA adapter '{name}' added successfully."
        if path == "/v1/unload_lora_adapter":
            name = body["lora_name"]
            if self.adapters.pop(name, None) is None:
                return 404, _error(f"The lora adapter '{name}' cannot be found.", 404)
            return 200, f"Success: LoRA adapter '{name}' removed successfully."
        if path != "/v1/chat/completions":
            return 404, _error("Not Found", 404)
        model = body["model"]
        if model not in (self.base, *self.adapters):
            return 404, _error(f"The model `{model}` does not exist.", 404)
        self.asked.append(model)
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        choice = {"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": self._reply(body)}}  # fmt: skip
        return 200, {"id": "1", "object": "chat.completion", "created": 0, "model": model,
                     "choices": [choice], "usage": usage}  # fmt: skip

    def models(self) -> Iterator[dict[str, object]]:
        yield {"id": self.base, "object": "model", "root": self.base, "parent": None}
        for name, path in self.adapters.items():
            yield {"id": name, "object": "model", "root": path, "parent": self.base}


def _error(message: str, code: int) -> dict[str, object]:
    return {"error": {"message": message, "type": "BadRequestError", "code": code}}


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if stand_in.dead:
                return self._break()
            listed = {"object": "list", "data": list(stand_in.models())}
            self._send(200 if self.path == "/v1/models" else 404, listed)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if stand_in.dead:
                return self._break()
            self._send(*stand_in.answer(self.path, body))

        def _break(self) -> None:
            self.close_connection = True

        def _send(self, status: int, document: object) -> None:
            words = document if isinstance(document, str) else json.dumps(document)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(words.encode())))
            self.end_headers()
            self.wfile.write(words.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
