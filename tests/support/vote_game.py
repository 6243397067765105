"""A game in which a team learns from credit alone, to measure the effect of a critic's errors.

On each of several screens one of a few acts is right. Every agent has a table of preferences for
each screen and samples an act, and the majority is executed. The probability of success depends on
whether the executed act is right. Then each agent updates its preferences by its own credit. The
utility is the true probability of success.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from swarm_ui.node import derive
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.optim.credit.trust import Trust

Credit = Literal["outcome", "critic", "learned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteGame:
    """One family of games, and the settings of learning."""

    screens: int = 6
    acts: int = 4
    agents: int = 5
    right: float = 0.9
    """Success of an episode whose decision was right."""
    wrong: float = 0.1
    batches: int = 40
    episodes: int = 48
    rate: float = 1.0
    flip: float = 0.0
    """Share of the critic's verdicts that are wrong."""
    anti: bool = False
    """Whether the critic's verdicts are inverted."""
    fresh: bool = False
    """Errors are drawn for each message, not once for each screen and act."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of learning."""

    utility: float
    """True success of the team at the end, with sampling and vote."""
    curve: tuple[float, ...]
    """Share of successes in each batch."""
    weights: tuple[float, ...]
    """The critic's weight in each batch."""


def play(game: VoteGame, credit: Credit, seed: int, trust: Trust | None = None) -> Learned:
    """Learn one game; equal arguments give equal results.

    Args:
        credit: the outcome alone, the critic alone, or both with the learned weight.
        seed: seed of draws, outcomes and errors; the same for all kinds of credit.
        trust: the critic's weight for ``"learned"``; default: a new :class:`Trust`.
    """
    return _Team(game, seed).learn(credit, trust or Trust(Outcome()))


class _Team:
    def __init__(self, game: VoteGame, seed: int) -> None:
        self.game, self.seed = game, seed
        self.rng = random.Random(derive(seed, "votegame"))
        self.best = [self.rng.randrange(game.acts) for _ in range(game.screens)]
        self.chances: list[list[list[float]]] = []
        self.tables = [[[0.0] * game.acts for _ in range(game.screens)] for _ in range(game.agents)]

    def learn(self, credit: Credit, trust: Trust) -> Learned:
        curve, weights = [], []
        for _ in range(self.game.batches):
            self.chances = [[_softmax(row) for row in table] for table in self.tables]
            played = [self._episode() for _ in range(self.game.episodes)]
            outcomes = [outcome for _, _, outcome in played]
            scores = [[self._score(screen, act) for act in said] for screen, said, _ in played]
            if credit == "learned":
                trust.learn(
                    [[sum(row) / len(row)] for row in scores],
                    outcomes,
                    [f"{screen}" for screen, _, _ in played],
                )
            weight = {"outcome": 0.0, "critic": 1.0, "learned": trust.weight(0)}[credit]
            curve.append(sum(outcomes) / len(outcomes))
            weights.append(weight)
            self._update(played, scores, weight)
        return Learned(self.utility(), tuple(curve), tuple(weights))

    def utility(self, samples: int = 200) -> float:
        """True success. The randomness of the vote is averaged over draws."""
        rng = random.Random(derive(self.seed, "votegame utility"))
        game = self.game
        self.chances = [[_softmax(row) for row in table] for table in self.tables]
        hits = sum(
            _majority(self._say(s, rng), rng) == self.best[s]
            for s in range(game.screens)
            for _ in range(samples)
        )
        share = hits / (game.screens * samples)
        return game.wrong + (game.right - game.wrong) * share

    def _episode(self) -> tuple[int, list[int], float]:
        screen = self.rng.randrange(self.game.screens)
        said = self._say(screen, self.rng)
        hit = _majority(said, self.rng) == self.best[screen]
        chance = self.game.right if hit else self.game.wrong
        return screen, said, float(self.rng.random() < chance)

    def _say(self, screen: int, rng: random.Random) -> list[int]:
        acts = range(self.game.acts)
        return [rng.choices(acts, rows[screen])[0] for rows in self.chances]

    def _score(self, screen: int, act: int) -> float:
        score = float(act == self.best[screen]) != self.game.anti
        if self.game.fresh:
            wrong = self.rng.random() < self.game.flip
        else:
            wrong = derive(self.seed, "error", screen, act) / 2**53 < self.game.flip
        return float(score != wrong)

    def _update(
        self, played: list[tuple[int, list[int], float]], scores: list[list[float]], weight: float
    ) -> None:
        """Update each agent on each screen by its credit minus the mean credit of the screen."""
        game = self.game
        for agent, table in enumerate(self.tables):
            credit = [
                weight * scores[k][agent] + (1.0 - weight) * outcome
                for k, (_, _, outcome) in enumerate(played)
            ]
            for screen in range(game.screens):
                here = [k for k, (s, _, _) in enumerate(played) if s == screen]
                if len(here) < 2:
                    continue
                mean = math.fsum(credit[k] for k in here) / len(here)
                chances = self.chances[agent][screen]
                step = [0.0] * game.acts
                for k in here:
                    said = played[k][1][agent]
                    for act in range(game.acts):
                        step[act] += (credit[k] - mean) * ((act == said) - chances[act])
                table[screen] = [
                    t + game.rate * d / math.sqrt(len(here))
                    for t, d in zip(table[screen], step, strict=True)
                ]


def _softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def _majority(said: list[int], rng: random.Random) -> int:
    counts = Counter(said)
    most = max(counts.values())
    return rng.choice(sorted(act for act, n in counts.items() if n == most))
