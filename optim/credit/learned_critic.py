"""A critic from a trained language model, for environments without a known solution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.model import ChoosingModel, Request
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.learned.critic_files import AdapterFiles, CriticCard, read_card
from swarm_ui.optim.credit.learned.question import question
from swarm_ui.prompts import format_named
from swarm_ui.trace.records import Episode

_CACHED_SCREENS = 20_000
ADAPTER = "critic"
"""The name of a critic's adapter in a model."""


class LearnedCritic:
    """The probability that a reply is right, according to a language model.

    The model sees goal, history, screen and one action, never the solution, the sender or its
    reason. One call scores all distinct proposals of a decision. Each proposal is scored once for
    a screen. A :class:`~swarm_ui.credit.Judge` too.
    """

    def __init__(
        self,
        model: ChoosingModel,
        *,
        adapter: str | None = ADAPTER,
        card: CriticCard | None = None,
        name: str = "",
    ) -> None:
        """
        Args:
            model: answers the questions.
            adapter: the trained adapter; ``None``: the model without training as a critic.
            card: its prompt format, answers and scaling.
            name: for tables and records.
        """
        self._model, self._adapter, self._card = model, adapter, card or CriticCard()
        self._form = format_named(self._card.prompt_format)
        self._known: dict[bytes, dict[ActionKey, float]] = {}
        self.name = name or f"learned critic ({model.name})"
        self.calls = 0
        """Questions to the model so far; each is about one action."""

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """A score in [0, 1] for each proposal, and 0.0 for a reply without a valid action.

        A node that failed or abstained is unscored. Raises ``ModelError`` if the model cannot
        answer.
        """
        return await together([self._credit(episode) for episode in episodes])

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """See :class:`swarm_ui.Judge`; the state is not used."""
        return [*await self.scores(observation, actions)]

    async def _credit(self, episode: Episode) -> Credit:
        if episode.success is None:
            return Credit.unscored(episode, self.name, f"masked: {episode.fault}")
        values: list[dict[str, float | None]] = []
        for record in episode.steps:
            said = {m.id: m.action for m in proposals(record.trace) if m.action is not None}
            found = await self.scores(
                record.trace.observation, list(said.values()), run=record.trace.run
            )
            values.append(dict.fromkeys(unreadable(record.trace), 0.0))
            values[-1] |= dict(zip(said, found, strict=True))
        return Credit.of(episode, values, source=self.name)

    async def scores(
        self, observation: Observation, actions: Sequence[Action], *, run: str = ""
    ) -> list[float]:
        """The probability that each action is right on a screen.

        Args:
            observation: the screen.
            actions: the actions to score, in the indices of the whole screen.
            run: the run that asks. The model serves several runs in turn.
        """
        screen = msgspec.structs.replace(observation, png=None)
        known = self._known.setdefault(msgspec.json.encode(screen), {})
        new = {a.key: a for a in actions if a.key not in known}
        if new:
            asked = [
                Request(
                    chat=question(screen, action, self._form),
                    adapter=self._adapter,
                    run=run,
                )
                for action in new.values()
            ]
            answers = await self._model.probabilities(asked, self._card.options)
            known.update(
                (key, self._card.scaling(answer[0]))
                for key, answer in zip(new, answers, strict=True)
            )
            self.calls += len(asked)
        found = [known[action.key] for action in actions]
        if len(self._known) > _CACHED_SCREENS:
            self._known.clear()
        return found


def learned_critic(model: object, folder: Path, *, adapter: str = ADAPTER) -> LearnedCritic:
    """The critic in a folder, as the training of a critic writes it.

    Args:
        model: the language model that it was trained on, into which the adapter is loaded. It may
            be the model of the agents.
        folder: the adapter with its ``critic.json``.
        adapter: the name of the adapter in the model.

    Raises:
        ConfigError: there is no critic in the folder, it does not fit the model, or the model
            cannot give probabilities of replies.
    """
    card = read_card(folder)
    if not isinstance(model, AdapterFiles):
        raise ConfigError(
            f"a learned critic needs a language model in this process that can load adapters "
            f"(CausalModel), got {type(model).__name__}"
        )
    model.load_adapter(folder, adapter)
    return LearnedCritic(model, adapter=adapter, card=card, name=critic_name(folder, model.name))


def critic_name(folder: Path, model: str) -> str:
    """The name of the critic in a folder. ``model``: the name of the model that it is loaded
    into."""
    return f"learned critic ({folder.name}, {model})"
