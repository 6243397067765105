"""A critic that a language model learned: it answers whether a reply is right on a screen.

The model sees goal, history, screen and one action, never the solution, the sender or its reason.
An adapter learns to answer yes or no (:func:`train_critic`, with trl's ``SFTTrainer``). The score
is the probability of yes relative to no, scaled on held-out replies, whose AUC stands on the
critic's card.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from swarm_ui.action import Action, ActionKey
from swarm_ui.adapter_metadata import CRITIC_FILE, AdapterMetadata
from swarm_ui.credit import Credit, credited
from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import write_atomic
from swarm_ui.model import ChatMessage, ChoosingModel, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.optim.config import FinetuneConfig, Result
from swarm_ui.optim.credit.critic import judged
from swarm_ui.optim.preferences import scored_proposals, with_alternatives, with_label
from swarm_ui.prompts import format_named
from swarm_ui.stats import Interval, percentile_interval
from swarm_ui.trace.records import Episode

ADAPTER = "critic"
"""The name of a critic's adapter in a model."""
OPTIONS = ("yes", "no")
"""The two possible answers. The score is the probability of the first one, relative to both."""
TRAINING = FinetuneConfig(learning_rate=5e-4, batch_size=16, accumulate=1)
"""Settings of :func:`train_critic` if none are given."""
_ASKED, _FORMAT = "Is this reply right?", "compact"
_CACHED_SCREENS = 20_000
Figures = dict[str, Any]
"""What :func:`critic_figures` measures, by name."""


def question(observation: Observation, action: Action) -> tuple[ChatMessage, ...]:
    """The chat of a critic about one proposal, in the indices of the whole screen.

    It is the chat of an agent in the format ``compact``, with the action as its reply, and one more
    turn, so an adapter of an agent is a good start. Without sender and reason, wording cannot
    influence the score.
    """
    form = format_named(_FORMAT)
    chat = form.chat(Decision(observation=observation))
    reply = form.write(with_label(action, observation), observation)
    return (*chat, ChatMessage("assistant", reply), ChatMessage("user", _ASKED))


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """``sigmoid(slope * log-odds + offset)`` (Platt 1999); the default changes nothing."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, probability: float) -> float:
        return float(_sigmoid(self.slope * float(_log_odds(probability)) + self.offset))

    @classmethod
    def fitted(cls, probabilities: Sequence[float], right: Sequence[bool]) -> Scaling:
        """The scaling of maximum likelihood, by Newton's method, with a prior of the weight of one
        reply and a positive slope. If all have one label, nothing changes."""
        if not any(right) or all(right):
            return cls()
        target = np.array(right, float)
        x = np.stack([_log_odds(probabilities), np.ones(len(right))], 1)
        start = weights = np.array([1.0, 0.0])
        for _ in range(50):
            p = _sigmoid(x @ weights)
            gradient = x.T @ (p - target) + (weights - start)
            curvature = (x * (p * (1.0 - p))[:, None]).T @ x + np.eye(2)
            weights = weights - np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        return cls(slope=min(20.0, max(0.05, float(weights[0]))), offset=float(weights[1]))


def _sigmoid(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.clip(z, -600.0, 600.0)))


def _log_odds(probabilities: Any) -> Any:
    """Within 30, since a probability may be exactly 0 or 1."""
    p = np.clip(probabilities, 1e-300, 1.0 - 1e-16)
    return np.clip(np.log(p) - np.log1p(-p), -30.0, 30.0)


class CriticCard(msgspec.Struct, frozen=True, kw_only=True):
    """The scaling of a trained critic, its base model, the replies and settings of its training,
    and how well it judges held-out replies."""

    scaling: Scaling = Scaling()
    base_model: str = ""
    replies: int = 0
    settings: dict[str, object] = {}
    validation: dict[str, float | None] = {}


class LearnedCritic:
    """The probability that a reply is right, according to a language model. One call scores all
    distinct proposals of a decision, each once for a screen. A :class:`~swarm_ui.credit.Judge` too.
    """

    def __init__(
        self,
        model: ChoosingModel,
        *,
        adapter: str | None = ADAPTER,
        card: CriticCard | None = None,
        name: str = "",
    ) -> None:
        """``adapter``: the critic's; ``None``: the model as it is. ``card``: has the scaling."""
        self._model, self._adapter, self.card = model, adapter, card or CriticCard()
        self._known: dict[bytes, dict[ActionKey, float]] = {}
        self.name = name or f"learned critic ({model.name})"

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """A score in [0, 1] for each proposal, and 0.0 for a reply without a valid action; a node
        that failed or abstained is unscored. Raises ``ModelError`` if the model cannot answer."""
        return await together([judged(self, episode) for episode in episodes])

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object = None
    ) -> list[float | None]:
        """The probability that each action is right; see :class:`swarm_ui.Judge`."""
        if len(self._known) > _CACHED_SCREENS:
            self._known = {}
        screen = msgspec.structs.replace(observation, png=None)
        known = self._known.setdefault(msgspec.json.encode(screen), {})
        new = {a.key: a for a in actions if a.key not in known}
        if new:
            asked = [Request(chat=question(screen, a), adapter=self._adapter) for a in new.values()]
            answers = await self._model.probabilities(asked, OPTIONS)
            known |= {key: answer[0] for key, answer in zip(new, answers, strict=True)}
        return [self.card.scaling(known[action.key]) for action in actions]


def learned_critic(model: Any, folder: Path) -> LearnedCritic:
    """The critic that :func:`train_critic` wrote, with its adapter loaded into the ``model`` it was
    trained on, which may be that of the agents. Raises ``ConfigError`` if there is no critic in the
    folder, or it does not fit the model."""
    card = read_card(folder)
    if not (hasattr(model, "probabilities") and hasattr(model, "load_adapter")):
        raise ConfigError(
            f"a learned critic needs a language model in this process that can load adapters "
            f"(CausalModel), got {type(model).__name__}"
        )
    model.load_adapter(folder, ADAPTER)
    return LearnedCritic(model, card=card, name=f"learned critic ({folder.name}, {model.name})")


def read_card(folder: Path) -> CriticCard:
    """The card of a critic. Raises ``ConfigError`` if the folder does not hold a trained critic."""
    path = folder / CRITIC_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=CriticCard)
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(
            f"no critic in '{folder}': expected {CRITIC_FILE} beside an adapter, as swarm-ui "
            f"critic writes it ({error})"
        ) from error


def write_card(card: CriticCard, folder: Path) -> None:
    """Write the card beside the adapter in a folder."""
    write_atomic(folder / CRITIC_FILE, msgspec.json.format(msgspec.json.encode(card), indent=1))


# -- training ---------------------------------------------------------------------------------


class LabelledReply(msgspec.Struct, frozen=True, kw_only=True):
    """An action on a screen, and whether it is right: one line of a critic's training data."""

    task: str
    seed: int
    step: int
    source: str
    """``agent``, ``adversary`` or ``teacher``."""
    observation: Observation
    """The screen with its goal and history, without a picture."""
    action: Action
    """In the indices of the whole screen."""
    right: bool


def labelled_replies(episodes: Sequence[Episode], credit: Sequence[Credit]) -> list[LabelledReply]:
    """The distinct proposals of each decision with credit above one half as right, and below it as
    wrong; and what adversary and teacher wrote under guidance. Masked episodes are left out.

    The labels are as good as the credit: an outcome blames the right steps of failed episodes too.
    """
    found: list[LabelledReply] = []
    for given, one in zip(episodes, credit, strict=True):
        if given.success is None:
            continue
        for step, (record, (wrong, shown)) in enumerate(with_alternatives(credited(given, one))):
            actions = [("agent", g) for g in scored_proposals(record)]
            actions += [("adversary", g) for g in wrong] + [("teacher", g) for g in shown]
            labels = {g.action.key: (source, g) for source, g in reversed(actions)}
            screen = msgspec.structs.replace(record.trace.observation, png=None)
            found += [
                LabelledReply(
                    task=given.task, seed=given.seed, step=step, source=source,
                    observation=screen, action=g.action, right=g.credit > 0.5,
                )
                for source, g in labels.values() if g.credit != 0.5
            ]  # fmt: skip
    return found


def train_critic(
    model: Path,
    replies: Sequence[LabelledReply],
    out: Path,
    *,
    config: FinetuneConfig = TRAINING,
    card: CriticCard | None = None,
    start: Path | None = None,
    report: Callable[[int, int, float], None] = lambda step, steps, loss: None,
) -> Result:
    """Train an adapter to answer yes for right replies and no for wrong ones, by supervised
    fine-tuning. An interrupted training continues from its last checkpoint.

    Args:
        model: folder of a causal transformer with its tokenizer.
        replies: the training data, of which as many right as wrong ones are drawn.
        out: the folder to write: the adapter in peft's format, and its card.
        card: origin and name of the base model.
        start: folder of an adapter to start from; ``None``: a new one.
        report: called with the step, the number of steps and the loss.

    Raises:
        ConfigError: there are no right and wrong replies, or no model in the folder.
        LearningError: a loss or a gradient was not a number.
        MissingExtra: trl or peft is not installed.
    """
    try:
        from swarm_ui.optim import sft
    except ModuleNotFoundError as error:
        raise MissingExtra("train", "the training of a critic", error.name or "trl") from None
    card, rng = card or CriticCard(base_model=model.name), random.Random(config.seed)
    sides = [[reply for reply in replies if reply.right is label] for label in (True, False)]
    drawn = [reply for side in sides for reply in rng.sample(side, min(map(len, sides)))]
    rng.shuffle(drawn)
    rows = list(map(_row, drawn))
    about = AdapterMetadata(prompt_format=_FORMAT, base_model=card.base_model, made_by="critic")
    made = sft.train_stage(model, start, out, rows, config=config, about=about, report=report)
    if made is None:
        raise ConfigError(
            f"critic training: there are no right and wrong replies to learn from: {len(replies)} "
            f"replies, {len(rows)} in equal parts, none of at most {config.max_length} tokens"
        )
    how = {"seed": config.seed, "learning_rate": config.learning_rate, "epochs": config.epochs}
    settings = {**card.settings, **how, "steps": made.steps, "loss": made.loss}
    write_card(msgspec.structs.replace(card, replies=made.samples, settings=settings), out)
    return made


def _row(reply: LabelledReply) -> dict[str, Any]:
    chat = question(reply.observation, reply.action)
    answer = {"role": "assistant", "content": OPTIONS[not reply.right]}
    turns = [{"role": turn.role, "content": turn.content} for turn in chat]
    return {"prompt": turns, "completion": [answer]}


# -- how well it judges -----------------------------------------------------------------------


def auc(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[object]
) -> Interval | None:
    """Probability that a right item has a higher score than a wrong one; ties count half. The
    interval is that of 200 resamples of whole ``clusters``, of which there is one for each item.
    ``None`` if all items are right, or none."""
    members: dict[object, list[tuple[float, float]]] = {}
    for score, fits, cluster in zip(scores, right, clusters, strict=True):
        members.setdefault(cluster, []).append((score, float(fits)))
    parts = [np.array(rows) for rows in members.values()]

    def figure(chosen: Sequence[Any]) -> float | None:
        values, fits = np.concatenate([np.empty((0, 2)), *chosen]).T
        good, bad = values[fits == 1.0], np.sort(values[fits == 0.0])
        if not (len(good) and len(bad)):
            return None
        lower = np.searchsorted(bad, good) + np.searchsorted(bad, good, "right")
        return float(lower.mean() / 2 / len(bad))

    whole, rng = figure(parts), random.Random(0)
    if whole is None:
        return None
    draws = (figure(rng.choices(parts, k=len(parts))) for _ in range(200))
    drawn = [value for value in draws if value is not None]
    return percentile_interval(whole, drawn or [-math.inf, math.inf], len(parts))


async def critic_figures(critic: LearnedCritic, replies: Sequence[LabelledReply]) -> Figures:
    """How well a critic judges replies; only those of agents count: their number (``replies``), the
    share of ``right`` ones, and the :func:`auc` by task; ``None``: there are none."""
    rows = [r for r in replies if r.source == "agent"]
    scores, right = await _scores(critic, rows), [r.right for r in rows]
    share = sum(right) / len(right) if right else None
    area = auc(scores, right, [r.task for r in rows])
    return {"replies": len(rows), "right": share, "auc": area}


async def calibrated(
    critic: LearnedCritic, replies: Sequence[LabelledReply], folder: Path
) -> Figures:
    """Scale the critic's scores so that they fit replies on which it was not trained; returns its
    figures on them, which are written on the card in the folder."""
    rows = [r for r in replies if r.source == "agent"]
    critic.card = msgspec.structs.replace(critic.card, scaling=Scaling())
    scaling = Scaling.fitted(await _scores(critic, rows), [r.right for r in rows])
    figures = await critic_figures(critic, rows)  # the scaling changes no order, so no AUC
    validation = {**figures, "auc": figures["auc"] and figures["auc"].mean}
    critic.card = msgspec.structs.replace(critic.card, scaling=scaling, validation=validation)
    write_card(critic.card, folder)
    return figures


async def _scores(critic: LearnedCritic, replies: Sequence[LabelledReply]) -> list[float]:
    found = await together([critic.grade(r.observation, [r.action]) for r in replies])
    return [score for (score,) in found if score is not None]
