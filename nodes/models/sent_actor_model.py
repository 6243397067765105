"""The part of an :class:`~swarm_ui.nodes.ActorModel` that is sent to the workers of a cluster.

A worker makes the prompts with the learner's tokenizer and asks the server itself, with a key from
its own environment. Only the process of the learner loads and unloads versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from swarm_ui.errors import ModelError
from swarm_ui.model import Completion, Request, at_leased_versions
from swarm_ui.nodes.models.chat_engine import ask_engine
from swarm_ui.nodes.models.leases import give_up
from swarm_ui.nodes.models.openai.model import OpenAIModel
from swarm_ui.nodes.models.transformers.prompt_reader import PromptReader


class SentActorModel:
    """Gets replies from a server on which the learner's process published versions of adapters.
    It is a :class:`~swarm_ui.model.VersionedModel`, and can be pickled for further workers.

    An adapter's name without a version means the version that was current when this object was
    pickled. A request for a version that the server has lost raises ``ModelUnavailable``: the
    process of the learner loads it again, and the episode is repeated.
    """

    def __init__(
        self,
        key: str,
        engine: OpenAIModel,
        prompts: PromptReader,
        current: Mapping[str, str],
        constrained: bool | None,
    ) -> None:
        """
        Args:
            key: identifies the actor model, so that a process has one client for it.
            engine: the server.
            prompts: makes the prompts of the published versions.
            current: the version of each adapter.
            constrained: see :class:`~swarm_ui.nodes.ActorModel`.
        """
        self.name = engine.name
        self._key, self._engine, self._prompts = key, engine, prompts
        self._current, self._constrained = dict(current), constrained
        self._leases: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"SentActorModel({self._engine!r}, trained in another process)"

    def __reduce__(self) -> tuple[Any, ...]:
        sent = self._key, self._engine, self._prompts, self._current, self._constrained
        return _received, sent

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        with at_leased_versions(self, requests) as exact:
            prompts = [self._prompts.prompt(request) for request in exact]
            return await ask_engine(self._engine, exact, prompts, constrained=self._constrained)

    def lease(self, adapter: str) -> str:
        """The published version of an adapter. Raises ``ModelError`` if there is none."""
        if adapter not in self._current and adapter not in self._current.values():
            known = ", ".join(self._current.values()) or "none"
            raise ModelError(f"no adapter '{adapter}' is published; there are: {known}")
        version = self._current.get(adapter, adapter)
        self._leases[version] += 1
        return version

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        give_up(self._leases, version)

    async def close(self) -> None:
        """Close the connections of this process."""
        await self._engine.close()


_KEPT_ENGINES = 8
_ENGINES: dict[str, OpenAIModel] = {}
"""Connections by the key of an actor model, in the order of last use. They and their limit on
concurrent calls belong to the process, because a team is sent again in every iteration. The copies
of an actor model keep their own."""


def _received(key: str, engine: OpenAIModel, *others: Any) -> SentActorModel:
    """The model in a worker, which loads nothing on the server."""
    known = _ENGINES.pop(key, engine)
    _ENGINES[key] = known
    if len(_ENGINES) > _KEPT_ENGINES:
        del _ENGINES[next(iter(_ENGINES))]
    known.know_loaded(engine)
    return SentActorModel(key, known, *others)
