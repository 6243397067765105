"""The arms of the study: where the samples come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.studies.commands.cells import (
    DECISIONS_PER_EPISODE,
    DECISIONS_PER_SECOND,
    SAMPLES_PER_SECOND,
    Cell,
)

SPLITS = ("parameters", "templates", "apps")
EVALUATION_SEED = 11
_STEPS_OF_WALK = {"phone": 5.35, "invented": 7.2}
"""Samples of level 3 that a walk gives, on average."""
_LEVELS_OF_WALK = 2.0
"""Samples of levels 1 and 2 that a walk gives besides, with one question and one instruction."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for two CPU cores; a study cannot change them once it has begun."""

    model: str = "smollm2"
    samples: int = 2400
    """Of each arm, about: walks are not cut."""
    learning_rate: float = 1e-3
    batch_size: int = 4
    """With so few samples, many small steps learn much more than few large ones of equal cost."""
    episodes: int = 38
    """Test episodes of each split."""
    concurrency: int = 16
    seed: int = 1


QUICK = Sizes(samples=12, batch_size=4, episodes=1, concurrency=2)
"""Shows that every cell works; the figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Arm:
    """The samples of one training: half of them, or without devices all, are of the phone."""

    name: str
    devices: int
    wordings: str = "many"
    levels: str = "3"
    free: bool = False
    """Whether it is also tested without constrained decoding."""


ARMS = (
    Arm("0 devices", 0, free=True),
    Arm("8 devices", 8),
    Arm("32 devices", 32),
    Arm("128 devices", 128, free=True),
    Arm("128 devices, few wordings", 128, wordings="few"),
    Arm("128 devices, levels 1 to 3", 128, levels="1,2,3"),
)


def cells(sizes: Sizes, out: Path) -> list[Cell]:
    """Every cell, in an order in which they can be done."""
    return [cell for arm in ARMS for cell in _cells(arm, sizes, out)]


def _cells(arm: Arm, sizes: Sizes, out: Path) -> Iterator[Cell]:
    short = "-".join(arm.name.replace(",", "").split())
    corpora = []
    share = 0.5 if arm.devices else 1.0
    for environment in ("phone", "invented") if arm.devices else ("phone",):
        corpora.append(f"corpus-{short}-{environment}")
        yield _corpus(corpora[-1], arm, environment, sizes, share)
    trained = f"trained-{short}"
    words = (
        "finetune", sizes.model, *(str(out / corpus) for corpus in corpora), str(out / trained),
        "--layers", "8-29", "--learning-rate", str(sizes.learning_rate),
        "--set", f"finetune.batch_size={sizes.batch_size}", "--set", "finetune.accumulate=1",
        "--set", "finetune.preferences=false", "--set", f"finetune.seed={sizes.seed}",
        "--set", "finetune.max_length=320",
    )  # fmt: skip
    yield Cell(trained, words, tuple(corpora), hours=sizes.samples / SAMPLES_PER_SECOND / 3600)
    for free in (False, True) if arm.free else (False,):
        decoding = ("--set", "model.constrained=false") if free else ()
        words = (
            "eval", "phone", "--model", sizes.model, "--adapters", str(out / trained / "final"),
            *(word for split in SPLITS for word in ("--split", split)), *decoding,
            "--seed", str(EVALUATION_SEED), "--episodes", str(sizes.episodes),
            "--concurrency", str(sizes.concurrency),
        )  # fmt: skip
        calls = sizes.episodes * len(SPLITS) * DECISIONS_PER_EPISODE
        yield Cell(
            f"test-{short}{'-free' if free else ''}", words, (trained,),
            arm.name + (", replies not constrained" if free else ""), sizes.seed, calls,
            calls / DECISIONS_PER_SECOND["compact"] / 3600, resume=True,
        )  # fmt: skip


def _corpus(name: str, arm: Arm, environment: str, sizes: Sizes, share: float) -> Cell:
    samples = _STEPS_OF_WALK[environment] + (_LEVELS_OF_WALK if arm.levels != "3" else 0.0)
    walks = max(1, round(share * sizes.samples / samples))
    words = [
        "synthesize", environment, "--walks", str(walks), "--levels", arm.levels,
        "--prompt-format", "compact", "--stray", "0.12", "--seed", str(sizes.seed),
        "--set", "synthesize.messages=0.15", "--set", "synthesize.screens=1",
        "--set", "synthesize.questions=1", "--set", "synthesize.instructions=1",
    ]  # fmt: skip
    if environment == "invented":
        words += ["--devices", str(arm.devices), "--wordings", arm.wordings]
    return Cell(name, tuple(words))
