"""The cells of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.studies.commands.cells import (
    DECISIONS_PER_EPISODE,
    DECISIONS_PER_SECOND,
    SAMPLES_PER_SECOND,
    Cell,
)
from benchmarks.studies.real_model.sizes import (
    AGENTS_COST,
    EVALUATION_SEEDS,
    ROUNDS_COST,
    Sizes,
)

PHONE_SPLITS = ("parameters", "templates", "apps")
AGENTS = 4
TEMPERATURES = ("0.2", "0.5", "0.6", "0.8")
"""The paper's, one for each agent."""
_FIRST = (EVALUATION_SEEDS[0],)
_OWN_STEPS = 20
"""Optimiser steps for each agent's own adapter, after an iteration that trains one for all."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A training of stage 2 that differs from the usual one."""

    label: str
    edges: Team | None = None
    """The team in training, if it has other edges than the tested one."""
    own: tuple[str, ...] | None = None
    """Settings of agents that get adapters of their own in the last iteration; ``None``: all
    iterations train one adapter for all agents."""
    pages: bool = False
    """Whether the team of the first seed is also tested on web pages."""
    words: tuple[str, ...] = ()
    """Further options of the training."""


@dataclass(frozen=True, slots=True)
class Team:
    """The agents of an evaluation."""

    label: str
    words: tuple[str, ...]
    calls: int
    """Calls of the model for each decision."""


class Plan:
    """All cells, in an order in which they can be done."""

    def __init__(self, sizes: Sizes, out: Path, seeds: Sequence[int], critic: Path | None) -> None:
        """``critic``: folder of a learned critic, which ``swarm-ui critic`` makes; ``None``: no arm
        uses one."""
        self.sizes, self.out, self.seeds, self.critic = sizes, out, tuple(seeds), critic
        spread = tuple(word for t in TEMPERATURES for word in ("--temperatures", t))
        members = ("--agents", str(AGENTS), *spread, "--vote", "probability")
        rounds = str(sizes.rounds)
        self._solo = Team("one agent", (), 1)
        self._vote = Team(f"vote of {AGENTS}", (*members, "--rounds", "1", "--edges", "none"),
                          AGENTS)  # fmt: skip
        self._talk = Team(f"vote of {AGENTS}", (*members, "--rounds", "1"), AGENTS)
        """Trained on edges that are redrawn in each iteration, so that agents read messages."""
        self._messages = Variant(", trained with messages", edges=self._talk)
        self._pages_too = Variant("", pages=True)
        self._taught = Variant(" and teacher", words=("--teacher", "scripted"))
        """The solver shows the right action where no agent proposes one."""
        self._own = Variant(", own adapters", own=(), pages=True)
        self._dag = Team(f"DAG, {rounds} rounds", (*members, "--rounds", rounds),
                         AGENTS * sizes.rounds)  # fmt: skip

    def cells(self) -> list[Cell]:
        """Every cell; those of the main comparison come first."""
        stage1 = ("--model", self.sizes.model, "--adapters", self.sizes.adapter)
        base = ("--model", "base")
        return [
            *self._phone("base agent (0.19 M)", base, self._solo, EVALUATION_SEEDS),
            *self._phone("stage 1", stage1, self._solo, EVALUATION_SEEDS),
            *self._phone("stage 1", stage1, self._vote),
            *self._stage2("rft", "scripted", self._vote, self.seeds, self._pages_too),
            *self._control(),
            *self._stage2("rft", "learned", self._vote, self.seeds, self._pages_too),
            *self._stage2("rft", "scripted", self._vote, self.seeds, self._taught),
            *self._stage2("rft", "scripted", self._vote, self.seeds, self._messages),
            *self._stage2("rft", "learned", self._vote, self.seeds[:1], self._messages),
            *self._stage2("rft", "outcome", self._vote, self.seeds[:1], self._pages_too),
            *self._stage2("rft", "scripted", self._vote, self.seeds[:1], self._own),
            *self._stage2("dpo", "scripted", self._vote, self.seeds[:1], self._pages_too),
            *self._phone("stage 1", stage1, self._dag),
            *self._stage2("rft", "scripted", self._dag, self.seeds[:1]),
            *self._zero_shot(),
            *self._pages("base agent (0.19 M)", base, "reference", self.sizes.pages),
            *self._pages("stage 1", stage1, "reference", self.sizes.pages),
            *self._pages("stage 1", stage1, "reference", self.sizes.pages, self._vote),
            *self._pages("base agent (0.19 M)", base, "blind", self.sizes.blind_pages),
            *self._pages("stage 1", stage1, "blind", self.sizes.blind_pages),
        ]

    def _zero_shot(self) -> Iterator[Cell]:
        """The model without an adapter, which reads the prompts of any format."""
        for form in ("compact", "json"):
            model = ("--model", self.sizes.model, "--prompt-format", form)
            yield self._evaluation(f"zero-shot, {form}", model, self._solo, "phone", PHONE_SPLITS,
                                   self.sizes.zero_shot_episodes, form=form)  # fmt: skip

    def _control(self) -> Iterator[Cell]:
        """As many optimiser steps of stage 1 as stage 2 makes, from the same adapter."""
        sizes, corpus = self.sizes, "control-corpus"
        yield Cell(corpus, ("synthesize", "phone", "--walks", str(sizes.walks), "--levels", "3",
                            "--prompt-format", "compact", "--stray", "0.12"))  # fmt: skip
        for seed in self.seeds:
            name, steps = f"control-{seed}", sizes.iterations * sizes.steps
            words = (
                "finetune", sizes.model, str(self.out / corpus), str(self.out / name),
                "--adapters", sizes.adapter, "--learning-rate", str(sizes.learning_rate),
                "--set", f"finetune.max_steps={steps}", "--set", f"finetune.seed={seed}",
                "--set", f"finetune.batch_size={sizes.batch_size}",
                "--set", "finetune.accumulate=1", "--set", "finetune.preferences=false",
            )  # fmt: skip
            hours = steps * sizes.batch_size / SAMPLES_PER_SECOND / 3600
            yield Cell(name, words, (corpus,), hours=hours)
            model = ("--model", sizes.model, "--adapters", str(self.out / name / "final"))
            yield from self._phone("more stage 1, equal steps", model, self._vote, seed=seed,
                                   needs=(name,))  # fmt: skip
            if seed == self.seeds[0] and sizes.pages:
                yield self._evaluation("more stage 1, equal steps", model, self._vote, "miniwob",
                                       ("reference",), sizes.pages, seed=seed,
                                       needs=(name,))  # fmt: skip

    def _stage2(
        self, method: str, critic: str, team: Team, seeds: Sequence[int],
        variant: Variant = Variant(""),
    ) -> Iterator[Cell]:  # fmt: skip
        if critic == "learned" and self.critic is None:
            return
        sizes = self.sizes
        for seed in seeds:
            how, own = variant.label, variant.own
            shared = sizes.iterations - (own is not None)
            name = _file_name(f"{method}-{critic}{how}-{team.label}-{seed}")
            words = [
                "train", "phone", "--model", sizes.model, "--adapters", sizes.adapter,
                *(variant.edges or team).words,
                "--method", method, "--critic", critic, "--seed", str(seed),
                "--iterations", str(sizes.iterations), "--rollouts", str(sizes.rollouts),
                "--set", f"train.shared_iterations={shared}",
                "--set", f"train.shared_steps={sizes.steps}",
                "--set", f"train.update.batch_size={sizes.batch_size}",
                "--set", f"train.update.lr={sizes.learning_rate}",
                "--set", f"train.concurrency={sizes.concurrency}", *variant.words,
            ]  # fmt: skip
            if own is not None:
                words += ["--set", f"train.update.steps={_OWN_STEPS}", *own]
            if critic == "learned":
                words += ["--critic-model", str(self.critic)]
            calls = sizes.iterations * sizes.rollouts * DECISIONS_PER_EPISODE * team.calls
            steps = shared * sizes.steps + (AGENTS * _OWN_STEPS if own is not None else 0)
            rows = steps * sizes.batch_size
            hours = self._hours(calls, team) + rows / SAMPLES_PER_SECOND / 3600
            yield Cell(name, tuple(words), calls=calls, hours=hours, resume=True)
            model = ("--model", sizes.model, "--adapters", str(self.out / name / "adapters"))
            row = f"stage 2: {method}, {critic} critic{how}"
            yield from self._phone(row, model, team, seed=seed, needs=(name,))
            if variant.pages and sizes.pages and seed == seeds[0]:
                yield self._evaluation(row, model, team, "miniwob", ("reference",), sizes.pages,
                                       seed=seed, needs=(name,))  # fmt: skip

    def _phone(
        self, row: str, model: tuple[str, ...], team: Team, chosen: Sequence[int] = _FIRST,
        *, seed: int = 0, needs: tuple[str, ...] = (),
    ) -> Iterator[Cell]:  # fmt: skip
        """The splits of the phone, in one cell."""
        yield self._evaluation(row, model, team, "phone", PHONE_SPLITS, self.sizes.episodes,
                               chosen, seed=seed, needs=needs)  # fmt: skip

    def _pages(
        self, row: str, model: tuple[str, ...], split: str, count: int, team: Team | None = None
    ) -> Iterator[Cell]:
        """One agent, or an untrained team, on web pages."""
        if count:
            yield self._evaluation(row, model, team or self._solo, "miniwob", (split,), count)

    def _evaluation(
        self, row: str, model: tuple[str, ...], team: Team, environment: str,
        splits: Sequence[str], count: int, chosen: Sequence[int] = _FIRST,
        *, seed: int = 0, needs: tuple[str, ...] = (), form: str = "compact",
    ) -> Cell:  # fmt: skip
        words = (
            "eval", environment, *model, *team.words,
            *(word for split in splits for word in ("--split", split)),
            *(word for number in chosen for word in ("--seed", str(number))),
            "--episodes", str(count), "--concurrency", str(self.sizes.concurrency),
        )  # fmt: skip
        calls = team.calls * count * DECISIONS_PER_EPISODE * len(splits) * len(chosen)
        place = environment if len(splits) > 1 else f"{environment}-{splits[0]}"
        return Cell(
            _file_name(f"{row}-{team.label}-{place}-{seed}"),
            words, needs, f"{row}, {team.label}", seed, calls, self._hours(calls, team, form),
            resume=True,
        )  # fmt: skip

    def _hours(self, calls: int, team: Team, form: str = "compact") -> float:
        cost = {1: 1.0, AGENTS: AGENTS_COST}.get(team.calls, ROUNDS_COST)
        return calls / team.calls * cost / DECISIONS_PER_SECOND[form] / 3600


def _file_name(text: str) -> str:
    kept = "".join(c if c.isalnum() else "-" for c in text.lower())
    return "-".join(filter(None, kept.split("-")))
