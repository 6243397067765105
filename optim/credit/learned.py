"""A critic that a language model learned: it answers whether a reply is right on a screen.

The model sees goal, history, screen and one action, never the solution, the sender or its reason.
An adapter is trained on judged replies (:mod:`swarm_ui.optim.credit.judged`). The loss is the
cross-entropy of the label over the two answers, and all replies to a screen are packed into one row
of tokens, so they cost little more than one reply. TRL's ``SFTTrainer`` would train the probability
of the answer over the whole vocabulary, with a row for each reply.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from swarm_ui.action import Action, ActionKey
from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.files import write_atomic
from swarm_ui.model import ChatMessage, ChoosingModel, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import with_label
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.optim.credit.judged import JudgedScreen, balanced
from swarm_ui.optim.examples import Trainable, full_batches
from swarm_ui.optim.update import training_mode
from swarm_ui.prompts import PromptFormat, format_named
from swarm_ui.trace.records import Episode

ADAPTER = "critic"
"""The name of a critic's adapter in a model."""
OPTIONS = ("yes", "no")
"""The two possible answers. The score is the probability of the first one, relative to both."""
CARD_VERSION = 2
_ASKED = "Is this reply right?"
_CACHED_SCREENS = 20_000
_STEEPEST, _FLATTEST = 20.0, 0.05
_LARGEST = 30.0
"""Bound of log-odds, since a probability may be exactly 0 or 1."""
_WARMUP, _FLOOR = 20, 0.02
"""Steps of linear warm-up. Then the rate falls linearly to ``_FLOOR`` times its peak."""


def question(
    observation: Observation, action: Action, form: PromptFormat
) -> tuple[ChatMessage, ...]:
    """The chat of a critic about one proposal.

    It is the chat of an agent on that screen, with the action as its reply, and one more turn that
    asks whether the reply is right. An adapter of an agent, which predicts such replies, is
    therefore a good start for the training of a critic.

    The sender and its reason are left out. So the wording of a reply cannot influence its score,
    and the questions about all proposals on a screen have a common prefix.

    Args:
        observation: the screen.
        action: the proposal, in the indices of the whole screen.
        form: how screen and action are written.
    """
    chat = form.chat(Decision(observation=observation))
    reply = form.write(with_label(action, observation), observation)
    return (*chat, ChatMessage("assistant", reply), ChatMessage("user", _ASKED))


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """``sigmoid(slope * log-odds + offset)``; the default changes nothing."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, probability: float) -> float:
        """The scaled probability."""
        z = self.slope * log_odds(probability) + self.offset
        return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def log_odds(probability: float) -> float:
    """``log(p / (1 - p))``, within bounds."""
    if probability <= 0.0 or probability >= 1.0:
        return -_LARGEST if probability <= 0.0 else _LARGEST
    found = math.log(probability) - math.log1p(-probability)
    return max(-_LARGEST, min(_LARGEST, found))


class CriticCard(msgspec.Struct, frozen=True, kw_only=True):
    """The data needed to use a trained critic, and the origin of the critic."""

    critic_version: int = CARD_VERSION
    prompt_format: str = "compact"
    """Prompt format of the questions to the critic."""
    options: tuple[str, str] = OPTIONS
    scaling: Scaling = Scaling()
    """The calibration, fitted on validation episodes."""
    base_model: str = ""
    """Name of the model that the adapter was trained on."""
    replies: int = 0
    """Number of replies that the critic was trained on."""
    settings: dict[str, object] = {}
    """Settings of its training, as JSON values."""
    validation: dict[str, float | None] = {}
    """How well the critic judges the validation episodes."""


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
        """The probability that each action is right, in the indices of the whole screen.

        ``run``: the run that asks. The model serves several runs in turn.
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


def learned_critic(model: Any, folder: Path, *, adapter: str = ADAPTER) -> LearnedCritic:
    """The critic in a folder, as the training of a critic writes it.

    Args:
        model: the language model that it was trained on, into which the adapter is loaded. It may
            be the model of the agents.
        folder: the adapter with its ``critic.json``.
        adapter: the name of the adapter in the model.

    Raises:
        ConfigError: there is no critic in the folder, or it does not fit the model.
    """
    card = read_card(folder)
    if not (hasattr(model, "probabilities") and hasattr(model, "load_adapter")):
        raise ConfigError(
            f"a learned critic needs a language model in this process that can load adapters "
            f"(CausalModel), got {type(model).__name__}"
        )
    model.load_adapter(folder, adapter)
    return LearnedCritic(
        model, adapter=adapter, card=card, name=f"learned critic ({folder.name}, {model.name})"
    )


def save_critic(model: Any, adapter: str, card: CriticCard, folder: Path) -> None:
    """Write an adapter of the model as a critic. The folder is written atomically.

    Raises:
        ConfigError: the folder exists, or cannot be written.
    """
    if folder.exists():
        raise ConfigError(f"cannot write a critic to '{folder}': it exists; choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
            model.save_adapters(Path(beside))
            fresh = Path(beside) / adapter
            write_atomic(
                fresh / CRITIC_FILE, msgspec.json.format(msgspec.json.encode(card), indent=1)
            )
            fresh.rename(folder)
    except OSError as error:
        raise ConfigError(f"cannot write the critic '{folder}': {error}") from error


def read_card(folder: Path) -> CriticCard:
    """The card of a critic.

    Raises:
        ConfigError: the folder does not hold a trained critic, or another version wrote it.
    """
    path = folder / CRITIC_FILE
    if not path.is_file():
        raise ConfigError(
            f"no critic in '{folder}': expected {CRITIC_FILE} beside an adapter, as swarm-ui "
            "critic writes it"
        )
    try:
        card = msgspec.json.decode(path.read_bytes(), type=CriticCard)
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(f"'{path}' is not the card of a critic: {error}") from error
    if card.critic_version != CARD_VERSION:
        raise ConfigError(
            f"the critic '{folder}' has version {card.critic_version}, this library reads "
            f"{CARD_VERSION}; open it with the swarm-ui that wrote it"
        )
    format_named(card.prompt_format)
    return card


def fit_scaling(probabilities: Sequence[float], right: Sequence[bool]) -> Scaling:
    """The maximum-likelihood scaling, by Newton's method (Platt 1999).

    The slope is positive, so the order of the scores does not change. A prior of the weight of one
    reply keeps few replies from changing them much. If all replies have one label, the scores are
    left as they are.
    """
    if not any(right) or all(right):
        return Scaling()
    x = np.array([log_odds(p) for p in probabilities])
    features = np.stack([x, np.ones_like(x)], axis=1)
    target = np.array(right, dtype=float)
    start = np.array([1.0, 0.0])
    weights = start.copy()
    for _ in range(50):
        z = np.clip(features @ weights, -_LARGEST, _LARGEST)
        p = 1.0 / (1.0 + np.exp(-z))
        gradient = features.T @ (p - target) + (weights - start)
        curvature = (features * (p * (1.0 - p))[:, None]).T @ features + np.eye(2)
        change = np.linalg.solve(curvature, gradient)
        weights -= np.clip(change, -1.0, 1.0)
        if float(np.abs(change).max()) < 1e-9:
            break
    slope = min(_STEEPEST, max(_FLATTEST, float(weights[0])))
    return Scaling(slope=slope, offset=float(weights[1]))


@runtime_checkable
class TrainableJudge(Trainable, Protocol):
    """A choosing model whose adapters can be trained."""

    def packed(self, chats: Sequence[Sequence[ChatMessage]]) -> Sequence[Any]:
        """Chats as rows of tokens, in order. Adjacent chats with a common prefix may share a row.
        A row has its token ``ids``, and in ``ends`` the last position of each chat."""
        ...

    def option_logits(self, rows: Sequence[Any], options: Sequence[str]) -> list[Tensor]:
        """Logits of the answer options (such as "yes" and "no") after each prompt: one tensor
        ``[prompts in the row, options]`` for each row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticConfig:
    """Settings of the training."""

    prompt_format: str = "compact"
    epochs: float = 1.0
    """Passes over the screens."""
    minutes: float = math.inf
    """The training ends after this time at the latest. The learning rate then also depends on the
    time, so that it reaches its final value; but then equal seeds do not give equal weights."""
    tokens_per_batch: int = 2_400
    """Tokens in one optimiser step, padding included."""
    most: int = 6
    """Maximum number of replies to one screen; see
    :func:`~swarm_ui.optim.credit.judged.balanced`."""
    learning_rate: float = 5e-4
    rank: int = 16
    """Rank of a new adapter; alpha is twice it."""
    seed: int = 0

    def __post_init__(self) -> None:
        names = ("epochs", "minutes", "learning_rate", "tokens_per_batch", "rank")
        wrong = [
            f"{n} must be above 0, got {getattr(self, n)}"
            for n in names
            if not getattr(self, n) > 0
        ]
        wrong += [f"most must be >= 2, got {self.most}"] * (self.most < 2)
        if wrong:
            raise ConfigError(f"critic training: {'; '.join(wrong)}")


class CriticProgress(NamedTuple):
    """State of the training, for a progress bar."""

    share: float
    """Finished share of the training, in [0, 1]."""
    step: int
    replies: int
    """Replies trained on so far."""
    loss: float
    """Mean loss over the last steps, nats; a random guess has ``log 2``. NaN before the first
    step."""
    accuracy: float
    """Share of replies in the last steps whose label had more than half of the probability."""
    seconds: float
    """Wall time so far."""


class _Row(NamedTuple):
    packed: Any
    right: list[bool]


def train_critic(
    model: TrainableJudge,
    adapter: str,
    screens: Sequence[JudgedScreen],
    config: CriticConfig | None = None,
    *,
    report: Callable[[CriticProgress], None] | None = None,
    every: int = 10,
) -> CriticProgress:
    """Train an adapter in place; returns the final state.

    Args:
        model: the language model.
        adapter: its name; it is added if the model does not have it.
        screens: judged screens, which are balanced first.
        config: settings.
        report: called after ``every`` steps and at the end.

    Raises:
        ConfigError: the screens do not have both right and wrong replies.
        LearningError: a loss or a gradient is not a number; the adapter has the weights of the
            step before.
    """
    settings = config or CriticConfig()
    rows = _rows(model, screens, settings)
    if not rows:
        raise ConfigError(
            "critic training: there are no right and wrong replies to learn from; "
            f"got {len(screens)} screens"
        )
    if adapter not in model.adapters:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            model.add_adapter(adapter, rank=settings.rank, alpha=2 * settings.rank)
    with (
        torch.random.fork_rng(devices=[]),
        model.activate(adapter),
        training_mode(model.module, UpdateConfig()),
    ):
        torch.manual_seed(settings.seed)
        return _trained(model, adapter, _batches(rows, settings), settings, report, every)


def _rows(
    model: TrainableJudge, screens: Sequence[JudgedScreen], settings: CriticConfig
) -> list[_Row]:
    form, found = format_named(settings.prompt_format), []
    for screen in balanced(screens, random.Random(settings.seed), most=settings.most):
        chats = [question(screen.observation, reply.action, form) for reply in screen.replies]
        labels = [reply.right for reply in screen.replies]
        for packed in model.packed(chats):
            found.append(_Row(packed, labels[: len(packed.ends)]))
            labels = labels[len(packed.ends) :]
    return found


def _trained(
    model: TrainableJudge,
    adapter: str,
    batches: Sequence[Sequence[_Row]],
    settings: CriticConfig,
    report: Callable[[CriticProgress], None] | None,
    every: int,
) -> CriticProgress:
    """The steps of one training."""
    parameters = model.adapter_parameters(adapter)
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate)
    began, replies, recent = time.monotonic(), 0, list[tuple[float, float]]()
    progress = CriticProgress(0.0, 0, 0, math.nan, math.nan, 0.0)

    def share(step: int) -> float:
        """The finished share of the training, by steps or by time."""
        passed = (time.monotonic() - began) / 60 / settings.minutes
        return min(1.0, max(step / len(batches), passed))

    for step, batch in enumerate(batches):
        before = share(step)
        if before >= 1.0:
            break
        logits = torch.cat(model.option_logits([row.packed for row in batch], OPTIONS))
        labels = [label for row in batch for label in row.right]
        right = torch.tensor(labels, device=logits.device)
        odds = logits[:, 0] - logits[:, 1]
        loss = F.binary_cross_entropy_with_logits(odds, right.float())
        _check_finite("loss", loss, step, settings)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        _check_finite("gradient's norm", norm, step, settings)
        warm = min(1.0, (step + 1) / _WARMUP)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * warm * max(_FLOOR, 1.0 - before)
        optimizer.step()
        hits = float(((odds.detach() > 0) == right).float().mean())
        recent = [*recent, (float(loss.detach()), hits)][-4 * every :]
        replies += len(labels)
        mean, hit = (sum(found) / len(found) for found in zip(*recent, strict=True))
        done, seconds = share(step + 1), time.monotonic() - began
        progress = CriticProgress(done, step + 1, replies, mean, hit, seconds)
        if report is not None and ((step + 1) % every == 0 or done >= 1.0):
            report(progress)
    return progress


def _check_finite(what: str, value: Tensor, step: int, settings: CriticConfig) -> None:
    """Raise ``LearningError`` before a step whose loss or gradient is infinite or not a number."""
    if not bool(value.isfinite()):
        raise LearningError(
            f"critic training: the {what} is {float(value.detach())} at step {step + 1}; the "
            "weights are those of the step before. Lower learning_rate (it is "
            f"{settings.learning_rate:g})"
        )


def _batches(rows: Sequence[_Row], settings: CriticConfig) -> list[list[_Row]]:
    """Batches of about ``tokens_per_batch``, each of rows of about the same length."""
    rng = random.Random(settings.seed)
    wanted = max(1, round(settings.epochs * len(rows)))
    drawn: list[_Row] = []
    while len(drawn) < wanted:
        drawn += rng.sample(list(rows), min(len(rows), wanted - len(drawn)))
    batches: list[list[_Row]] = []
    for first in range(0, len(drawn), 256):
        part = drawn[first : first + 256]
        here = full_batches(part, lambda row: len(row.packed.ids), settings.tokens_per_batch)
        rng.shuffle(here)
        batches += here
    return batches
