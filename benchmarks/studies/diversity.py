"""Does SmolLM2 gain on new apps if its stage 1 includes invented devices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.configured import Configured
from benchmarks.studies.real_model import PHONE, SOLO
from benchmarks.study import Arm, Study

SAMPLES = 2400
"""Of each arm, about: walks are not cut."""
STEPS_OF_WALK = {"phone": 5.35, "invented": 7.2}
"""Samples of level 3 that a walk gives, on average; levels 1 and 2 give two more."""


def stage1(
    folder: Path, seed: int, *, devices: int, wordings: str = "many", levels: Sequence[int] = (3,)
) -> Sequence[Sequence[str]]:
    """Corpora of the phone and, for half of the samples, of devices; then the fine-tuning."""
    places = ("phone", "invented") if devices else ("phone",)
    commands, corpora = list[Sequence[str]](), list[str]()
    for place in places:
        samples = STEPS_OF_WALK[place] + (2.0 if len(levels) > 1 else 0.0)
        corpora.append(str(folder / f"corpus-{place}"))
        own = (f"env.devices={devices}", f"env.wordings={wordings}") if place == "invented" else ()
        commands.append((
            "synthesize", place, "--out", corpora[-1], "--prompt-format", "compact",
            "--walks", str(round(SAMPLES / len(places) / samples)), "--seed", str(seed),
            f"synthesize.levels={list(levels)}", "synthesize.stray=0.12",
            "synthesize.messages=0.15", "synthesize.screens=1", "synthesize.questions=1",
            "synthesize.instructions=1", *own,
        ))  # fmt: skip
    commands.append((
        "finetune", "smollm2", *corpora, str(folder / "stage1"),
        "finetune.learning_rate=1e-3", "finetune.batch_size=4", "finetune.accumulate=1",
        "finetune.preferences=false", f"finetune.seed={seed}", "finetune.max_length=320",
    ))  # fmt: skip
    return commands


def arm(devices: int, **settings: object) -> Configured:
    """SmolLM2 after stage 1 with these devices."""
    commands = partial(stage1, devices=devices, **settings)  # type: ignore[arg-type]
    return Configured(tests=(PHONE,), set={"model.name": "smollm2", **SOLO}, commands=commands)


FREE = arm(0)
ARMS: Mapping[str, Arm] = {
    "0 devices": FREE,
    "0 devices, replies not constrained": replace(
        FREE, set={**FREE.set, "model.constrained": False}
    ),
    **{f"{count} devices": arm(count) for count in (8, 32, 128)},
    "128 devices, few wordings": arm(128, wordings="few"),
    "128 devices, levels 1 to 3": arm(128, levels=(1, 2, 3)),
}
STUDY = Study(
    arms=ARMS,
    trial=("0 devices",),
    named=(),
    seeds=(1,),
    pooled=False,
    shown=("0 devices", "32 devices", "128 devices", "128 devices, few wordings"),
    shown_on=("new parameters", "new apps"),
    note="The phone is simulated. The recorded adapters change layers 8 to 29, those of a new run "
    "all layers. SmolLM2 needs: swarm-ui models pull smollm2.",
)
