"""Loads adapters on a running server, as vLLM allows, and loads them again after it restarted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.nodes.models.loop_locks import LoopLocks
from swarm_ui.nodes.models.openai.endpoint import Endpoint, ServedModel
from swarm_ui.nodes.models.openai.failures import RequestRejected
from swarm_ui.nodes.models.openai.served_adapters import served_name

LIST_SECONDS = 30.0
"""Seconds to wait for the list of models. A server that is busy with a batch answers late."""
_NO_ROUTE = "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora"


class HotAdapters:
    """Versions of adapters that this client loaded on a server. Changes are made one at a time, so
    that the list matches the server.

    The name of a version on the server is that of :func:`served_name`. Each version has a new
    folder: servers key their prefix caches by the name, and newer servers also by the folder.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.loaded: dict[str, tuple[Path, str]] = {}
        """Folder and salt of each loaded version, by its served name."""
        self._changing = LoopLocks()
        self.elsewhere = False
        """Whether only another process loads versions on the server."""

    def __contains__(self, name: object) -> bool:
        """Whether a served name was loaded by this client."""
        return name in self.loaded

    def know(self, loaded: Mapping[str, tuple[Path, str]]) -> None:
        """Replace the known versions by those that another process loaded on the server."""
        self.loaded = dict(loaded)

    def extra_fields(self, name: str) -> Mapping[str, object]:
        """Fields of the body of a request to a served name.

        An earlier training run may have loaded other weights under the same name. The salt keeps
        prefix caches that are keyed by the name alone from mixing the two.
        """
        return {"cache_salt": self.loaded[name][1]} if name in self.loaded else {}

    async def load(self, version: str, folder: Path) -> None:
        """Load a version, which the server reads from ``folder`` itself.

        Raises:
            ModelUnavailable: the server does not answer.
            ModelError: the server refuses the adapter, cannot load adapters while it runs, or has
                other weights under this name.
        """
        name = served_name(version)
        async with self._changing.current():
            await self._load(name, folder.resolve())
            self.loaded[name] = folder.resolve(), _digest(folder)

    async def unload(self, version: str) -> None:
        """Remove a version from the server; no error if the server does not have it. Raises
        ``ModelUnavailable`` if the server does not answer."""
        name = served_name(version)
        async with self._changing.current():
            self.loaded.pop(name, None)
            body = {"lora_name": name}
            try:
                await self._endpoint.post("unload_lora_adapter", body, f"to unload '{name}'")
            except RequestRejected as rejection:
                if rejection.status != 404:  # a restarted server has forgotten it
                    raise

    async def restore(self, name: str) -> None:
        """Load a version again if the server has lost it, for example by a restart.

        Many requests may notice a restart at the same time; the first one loads the adapter.

        Raises:
            ModelUnavailable: the server does not answer, or only another process may load versions
                (it does so before the episode is repeated).
        """
        if self.elsewhere:
            raise ModelUnavailable(
                f"{self._endpoint.where}: the server does not have the adapter '{name}', or has "
                "lost it. The process that trains the adapter loads it"
            )
        async with self._changing.current():
            known = self.loaded.get(name)
            if known is not None and name not in {model.name for model in await self._listed()}:
                await self._load(name, known[0])

    async def _load(self, name: str, folder: Path) -> None:
        body: dict[str, object] = {"lora_name": name, "lora_path": str(folder)}
        try:
            await self._endpoint.post("load_lora_adapter", body, f"to load '{name}'")
        except RequestRejected as rejection:
            if rejection.status == 404:
                # Also the answer for a folder that it cannot read; the text says so.
                raise ModelError(f"{rejection}; {_NO_ROUTE}") from rejection
            held = {model.name: model.root for model in await self._listed()}
            if name not in held:
                raise
            await self._replace(name, held[name], folder)

    async def _replace(self, name: str, held: str | None, folder: Path) -> None:
        """Handle a name that the server already has. Nothing is done if it was loaded from this
        folder. Weights from a sibling folder are replaced: an earlier process of this run left
        them."""
        if held == str(folder):
            return
        if held is None or Path(held).parent != folder.parent:
            raise ModelError(
                f"{self._endpoint.where}: '{name}' is loaded already, from "
                f"{held or 'another folder'}, so {folder} cannot be loaded under this name. "
                "Another run uses the name: wait for it to end, or restart the server"
            )
        body = {"lora_name": name, "lora_path": str(folder), "load_inplace": True}
        await self._endpoint.post("load_lora_adapter", body, f"to replace '{name}'")

    async def _listed(self) -> tuple[ServedModel, ...]:
        return await self._endpoint.listed(LIST_SECONDS) or ()


def _digest(folder: Path) -> str:
    """A hash of the weights in a folder; for a folder on another machine, a hash of its path."""
    file = folder / "adapter_model.safetensors"
    content = file.read_bytes() if file.is_file() else str(folder).encode()
    return sha256(content).hexdigest()[:32]


async def tokenized(endpoint: Endpoint, model: str, messages: list[dict[str, object]]) -> list[int]:
    """The tokens of a chat as the server's model reads them (a route of vLLM).

    Raises:
        ModelError: the server does not answer, or has no such route.
    """
    body = {"model": model, "messages": messages, "add_generation_prompt": True}
    text = await endpoint.post("//tokenize", body, "the tokens of a chat")
    with suppress(msgspec.DecodeError, KeyError, TypeError, ValueError):
        return [int(token) for token in msgspec.json.decode(text)["tokens"]]
    raise ModelError(f"{endpoint.where}: expected the tokens of a chat, got {text[:80]!r}")
