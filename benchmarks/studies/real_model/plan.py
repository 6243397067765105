"""The cells of the study: each is one ``swarm-ui`` command, which can also be typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.studies.real_model.sizes import CALLS_PER_EPISODE, EVALUATION_SEED, Sizes

PHONE_SPLITS = ("parameters", "templates", "apps")
AGENTS = 4
CRITICS = ("scripted", "learned", "outcome")


@dataclass(frozen=True, slots=True)
class Cell:
    """One command."""

    name: str
    """Also the name of the folder that it writes."""
    words: tuple[str, ...]
    """What follows ``swarm-ui``, without the output."""
    needs: tuple[str, ...] = ()
    """Cells that must be done before."""
    row: str = ""
    """The row of the table that an evaluation belongs to; empty: not an evaluation."""
    seed: int = 0
    """Seed of the training; 0: nothing was trained."""
    split: str = ""
    calls: int = 0
    """Estimated calls of the model."""
    resume: bool = False
    """Whether an interrupted run goes on with ``--resume``; the others with the same command."""


class Plan:
    """All cells, in an order in which they can be done."""

    def __init__(self, sizes: Sizes, out: Path, seeds: Sequence[int], critic: Path | None) -> None:
        """``critic``: folder of a learned critic (``python -m benchmarks.studies.critic`` makes
        one); ``None``: no arm uses it."""
        self.sizes, self.out, self.seeds, self.critic = sizes, out, tuple(seeds), critic

    def cells(self) -> list[Cell]:
        """Every cell."""
        return [
            *self._evaluations("base agent (0.19 M)", 0, ("--model", "base"), (), arms=("solo",)),
            *self._zero_shot(),
            *self._corpora(),
            *(cell for seed in self.seeds for cell in self._trained(seed)),
        ]

    def _zero_shot(self) -> Iterator[Cell]:
        for form in ("json", "compact"):
            model = ("--model", self.sizes.model, "--prompt-format", form)
            yield from self._evaluations(f"zero-shot, {form}", 0, model, (), arms=("solo",))

    def _corpora(self) -> Iterator[Cell]:
        walks = ("--walks", str(self.sizes.walks), "--prompt-format", "compact")
        yield Cell("corpus-phone", ("synthesize", "phone", *walks, "--stray", "0.12"))
        devices = ("--set", f"environment.devices={self.sizes.devices}")
        yield Cell(
            "corpus-invented", ("synthesize", "invented", *walks, "--stray", "0.12", *devices)
        )
        yield Cell("corpus-screens", ("synthesize", "screens", *walks))

    def _trained(self, seed: int) -> Iterator[Cell]:
        """Stage 1, its control, and stage 2 with each critic."""
        first = f"stage1-{seed}"
        yield self._finetune(first, self.sizes.model, seed, ())
        adapter = self.out / first / "final"
        own = ("--model", self.sizes.model, "--adapters", str(adapter))
        yield from self._evaluations("stage 1", seed, own, (first,), arms=("solo", "vote"))
        merged, more = f"merged-{seed}", f"stage1-more-{seed}"
        yield Cell(merged, ("adapters", "merge", self.sizes.model, str(adapter)), (first,))
        yield self._finetune(more, str(self.out / merged), seed + 100, (merged,))
        control = ("--model", str(self.out / merged), "--adapters", str(self.out / more / "final"))
        yield from self._evaluations("more stage 1", seed, control, (more,), arms=("solo", "vote"))
        for method, critic in [*(("rft", critic) for critic in CRITICS), ("dpo", "scripted")]:
            if critic != "learned" or self.critic is not None:
                yield from self._stage2(method, critic, seed, own, first)

    def _finetune(self, name: str, model: str, seed: int, needs: tuple[str, ...]) -> Cell:
        corpora = ("corpus-phone", "corpus-invented", "corpus-screens")
        folders = [str(self.out / corpus) for corpus in corpora]
        words = (
            "finetune", model, *folders, str(self.out / name),
            "--minutes", str(self.sizes.minutes), "--layers", self.sizes.layers,
            "--learning-rate", str(self.sizes.learning_rate), "--set", f"finetune.seed={seed}",
        )  # fmt: skip
        return Cell(name, words, (*corpora, *needs))

    def _stage2(
        self, method: str, critic: str, seed: int, model: tuple[str, ...], needs: str
    ) -> Iterator[Cell]:
        sizes = self.sizes
        name = f"{method}-{critic}-{seed}"
        words = [
            "train", "phone", *model, "--method", method, "--critic", critic,
            "--agents", str(AGENTS), "--rounds", str(sizes.rounds), "--seed", str(seed),
            "--iterations", str(sizes.iterations), "--rollouts", str(sizes.rollouts),
            "--set", f"train.concurrency={sizes.concurrency}", "--set", "train.rehearsal=0.0",
        ]  # fmt: skip
        if critic == "learned":
            words += ["--critic-model", str(self.critic)]
        calls = sizes.iterations * sizes.rollouts * CALLS_PER_EPISODE * AGENTS * sizes.rounds
        yield Cell(name, tuple(words), (needs,), calls=calls, resume=True)
        own = ("--model", sizes.model, "--adapters", str(self.out / name / "adapters"))
        row = f"stage 2: {method}, {critic} critic"
        yield from self._evaluations(row, seed, own, (name,), arms=("solo", "vote", "dag"))

    def _evaluations(
        self, row: str, seed: int, model: tuple[str, ...], needs: tuple[str, ...],
        arms: tuple[str, ...],
    ) -> Iterator[Cell]:  # fmt: skip
        """One cell for each arm and split."""
        teams = {
            "solo": ("one agent", (), 1),
            "vote": (f"vote of {AGENTS}", (
                "--agents", str(AGENTS), "--rounds", "1", "--edges", "none",
                "--views", "shuffle", "--vote", "probability",
            ), AGENTS),
            "dag": (f"DAG, {self.sizes.rounds} rounds", (
                "--agents", str(AGENTS), "--rounds", str(self.sizes.rounds), "--views", "shuffle",
                "--vote", "probability",
            ), AGENTS * self.sizes.rounds),
        }  # fmt: skip
        splits = [("phone", split, self.sizes.episodes) for split in PHONE_SPLITS]
        splits += [("miniwob", "reference", self.sizes.pages)] * bool(self.sizes.pages)
        splits += [("miniwob", "blind", self.sizes.blind_pages)] * bool(self.sizes.blind_pages)
        for arm in arms:
            label, team, calls = teams[arm]
            for environment, split, count in splits:
                words = (
                    "eval", environment, *model, *team, "--split", split, "--episodes", str(count),
                    "--seed", str(EVALUATION_SEED), "--concurrency", str(self.sizes.concurrency),
                )  # fmt: skip
                yield Cell(
                    _file_name(f"{row}-{arm}-{environment}-{split}-{seed}"),
                    words, needs, f"{row}, {label}", seed,
                    split if environment == "phone" else f"miniwob {split}",
                    calls * count * CALLS_PER_EPISODE, resume=True,
                )  # fmt: skip


def _file_name(text: str) -> str:
    kept = "".join(c if c.isalnum() else "-" for c in text.lower())
    return "-".join(filter(None, kept.split("-")))
