"""The values that agents should send and write in split facts, and a control that changes the
values sent.

Two seeds that differ only in the last bit are twins: the goal and the acting agent's screen are
equal, and all values in the other apps differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.environments.phone.goal import Create
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.message import Heard
from swarm_ui.model import ChatModel, Completion, Request


class Answers(msgspec.Struct, frozen=True):
    """The right values of an episode."""

    facts: tuple[tuple[str, str], ...]
    """App and value of each fact."""
    written: tuple[str, ...]
    """The fields that are computed from the facts."""


def answers(apps: int, task: str, seed: int) -> Answers:
    """The right values of an episode with ``apps`` open apps."""
    phone = SplitPhone(agents=apps, whole=True)
    goal, spec = phone.assign(task, seed).goal, phone.spec(task)
    values = [source.value for source in goal.sources]
    (new,) = [want for want in goal.wants if isinstance(want, Create)]
    return Answers(
        facts=tuple((fact.app, value) for fact, value in zip(spec.facts, values, strict=True)),
        written=tuple(new.fields[field] for field in spec.fills),
    )


class SwappedValues:
    """A model whose agents hear the values of the twin episode instead of those of their own.

    The rest of each message stays the same. A team that uses its messages fails, and writes the
    values of the twin.
    """

    def __init__(self, model: ChatModel, apps: int) -> None:
        self._model, self._apps = model, apps
        self.name = f"{model.name}, values swapped"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Ask the model with changed messages."""
        return await self._model.generate([self._changed(request) for request in requests])

    def _changed(self, request: Request) -> Request:
        decision = request.decision
        if decision is None or not decision.heard:
            return request
        task, seed, _ = request.run.split("/", 2)
        values = self._twin_values(task, int(seed))
        heard = tuple(_replaced(each, values) for each in decision.heard)
        changed = msgspec.structs.replace(decision, heard=heard)
        return msgspec.structs.replace(request, decision=changed)

    def _twin_values(self, task: str, seed: int) -> Mapping[str, str]:
        own, twin = answers(self._apps, task, seed), answers(self._apps, task, seed ^ 1)
        pairs = zip(own.facts, twin.facts, strict=True)
        return {mine: theirs for (_, mine), (_, theirs) in pairs}


def _replaced(heard: Heard, values: Mapping[str, str]) -> Heard:
    content = heard.content
    for mine, theirs in values.items():
        content = content.replace(mine, theirs)
    return msgspec.structs.replace(heard, content=content)
