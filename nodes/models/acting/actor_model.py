"""Agents that ask a server while their adapters are trained in this process.

    learner = CausalModel.from_pretrained(folder)            # trains
    actor = OpenAIModel("base", "http://localhost:8000/v1")  # vLLM, serves the same folder
    model = ActorModel(actor, learner, folder=run / "served")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)
    trainer = TeamTrainer(learner, team, …)

The learner knows which version of an adapter is current and which ones are leased. A version is
saved and loaded on the server at the first request to it, and unloaded when it is not current and
not leased. So no call is needed after a training step.

If other processes play the episodes, they ask the server themselves, for the versions that this
process published (:meth:`ActorModel.publish`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.files import replacing_folder
from swarm_ui.model import ChatMessage, Completion, Request, at_leased_versions
from swarm_ui.nodes.models.acting.published import ModelCopy, PublishedModel, shared
from swarm_ui.nodes.models.openai.model import AdapterLost, OpenAIModel
from swarm_ui.nodes.models.reply_patterns import decision_pattern
from swarm_ui.nodes.models.versions import not_sent

if TYPE_CHECKING:
    from swarm_ui.nodes.models.transformers.causal_model import CausalModel
    from swarm_ui.nodes.models.transformers.chat_reader import ChatReader


class ActorModel(PublishedModel):
    """The adapters of a learner, with replies from a server. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`; the part of
    it that workers get has no ``score``.

    The learner makes the prompts, so it trains on exactly the prompts that the server got.

    Args:
        engine: gives the replies: vLLM with ``--enable-lora``, which serves the base model of the
            learner, with the same weights.
        learner: holds the adapters.
        folder: where versions are saved for the server, which reads them from there. Each training
            run needs a separate folder.
    """

    def __init__(self, engine: OpenAIModel, learner: CausalModel, folder: Path) -> None:
        self._engine, self._folder = engine, folder.resolve()
        self._server = Server(uuid4().hex, engine, learner.codec.reader, self._folder)
        super().__init__(learner, ModelCopy(self._server, engine.name, False, None, {}))
        self.name = engine.name
        self._written: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._current:
            raise not_sent(f"the learner of '{self.name}'")
        formats = self._formats([None, *self._current.values()])
        return ModelCopy, (self._server, self.name, False, self._current, formats)

    @property
    def loaded(self) -> tuple[str, ...]:
        """The learner's versions that the server holds."""
        return tuple([each for each in self._engine.loaded if each in self._written])

    async def check(self) -> None:
        """Check that the server answers, and that it reads a chat as the learner does.

        Raises:
            ModelUnavailable: the server does not answer.
            ConfigError: it converts a chat to other tokens, because the model or the chat template
                differs.
        """
        chat = (ChatMessage(role="user", content="Goal: open calendar 02:36\nScreen:\nok [0]"),)
        here = self.learner.prompt(Request(chat=chat))
        there = await self._engine.tokens(here.turns)
        if there != here.ids:
            raise ConfigError(
                f"the server of '{self.name}' reads prompts differently from the learner "
                f"'{self.learner.name}': expected {len(here.ids)} tokens ({here.ids[:8]}…), got "
                f"{len(there)} ({there[:8]}…); serve the same model and chat template on both sides"
            )

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Versions that the server does not have yet are
        loaded first."""
        with at_leased_versions(self, requests) as exact:
            for version in _versions(exact):
                self._file(version)
            formats = self._formats([request.adapter for request in exact])
            done = await self._server.ask("generate", formats, exact)
            await self._tidy()
        return done

    async def close(self) -> None:
        """Unload all versions from the server if it answers, and close the connections."""
        try:
            for version in self.loaded:
                await self._engine.unload_version(version)
        except ModelUnavailable:
            pass  # it is gone, and its adapters with it
        finally:
            for version in self._written:
                shutil.rmtree(self._folder / version, ignore_errors=True)
            await self._engine.close()

    async def prepare(self) -> None:
        """Load published versions that the server lacks, for example after it was restarted, and
        unload those that are not needed, also of a process of this run that was killed."""
        engine = self._engine
        served = {model.name: model.root for model in await engine.served()}
        for version in sorted(self._current.values()):
            if engine.loaded.get(version) not in served:
                await engine.load_version(version, self._folder / version)
        await self._tidy()
        for name, root in served.items():
            left = root is not None and Path(root).parent == self._folder
            if left and name not in engine.loaded.values():
                await engine.unload_version(name)

    def _formats(self, versions: Sequence[str | None]) -> dict[str | None, str]:
        return {version: self.learner.format_of(version) for version in versions}

    def _file(self, version: str) -> Any:
        """Write a version for the server if it is not there; its prompt format is what other
        processes need of it. The versions of :meth:`publish` stay until the next call."""
        if version in self._written:
            return self.learner.format_of(version)
        place = self._folder / version
        try:
            with replacing_folder(place) as made:
                self.learner.save_version(version, made)
            place.chmod(0o755)  # the reader may be another user
        except OSError as error:
            raise ConfigError(
                f"cannot write {version} of '{self.name}' to '{place}': {error}. To do: make room, "
                "or choose a folder that this process can write"
            ) from error
        self._written.add(version)
        return self.learner.format_of(version)

    async def _tidy(self) -> None:
        """Remove the versions that are neither published nor current nor leased."""
        for version in self._written - {*self._current.values()}:
            if not self.learner.has_version(version):
                self._written.discard(version)
                await self._engine.unload_version(version)
                shutil.rmtree(self._folder / version, ignore_errors=True)


class Server:
    """A server that answers for a learner. Other processes ask it themselves, with a key from their
    own environment. A version that it lost is loaded again, from the learner's folder."""

    def __init__(self, key: str, engine: OpenAIModel, reader: ChatReader, folder: Path) -> None:
        """``key``: identifies it, so that a process has one client for it, with one limit on
        concurrent calls. ``reader``: makes the prompts, as the learner does."""
        self._engine = shared(key, engine)
        if self._engine is not engine:
            self._engine.know_loaded(engine)
        self._sent = key, self._engine, reader, folder

    def __reduce__(self) -> tuple[Any, ...]:
        return Server, self._sent

    async def close(self) -> None:
        """Close the connections of this process."""
        await self._engine.close()

    async def ask(
        self, method: str, files: Mapping[Any, Any], requests: Sequence[Request], *others: object
    ) -> list[Completion]:
        """The replies to requests. ``files``: the prompt format of each version."""
        _, _, reader, folder = self._sent
        engine, versions = self._engine, _versions(requests)
        if unknown := versions - files.keys():
            known = ", ".join(version for version in files if version) or "none"
            raise ModelError(f"no adapter '{min(unknown)}' is published; there are: {known}")
        prompts = [reader.read(request, files[request.adapter]) for request in requests]
        asked = [
            msgspec.structs.replace(
                request,
                decision=None,
                chat=prompt.turns,
                # As the learner samples; the defaults of the server may be others.
                temperature=request.temperature or 0.0,
                max_tokens=request.reply_tokens,
                tools=(),  # they are in the text of the chat, as the learner reads them
                pattern=decision_pattern(prompt.decision, prompt.prompt_format, None)
                or request.pattern,
            )
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        for version in versions - {*engine.loaded}:
            await engine.load_version(version, folder / version)
        try:
            replies = await engine.generate(asked)
        except AdapterLost:  # the server was restarted
            for version in versions:
                await engine.load_version(version, folder / version)
            replies = await engine.generate(asked)
        return [
            msgspec.structs.replace(
                reply, adapter=request.adapter, model=engine.name, **prompt.told()
            )
            for reply, prompt, request in zip(replies, prompts, requests, strict=True)
        ]


def _versions(requests: Sequence[Request]) -> set[str]:
    return {request.adapter for request in requests if request.adapter is not None}
