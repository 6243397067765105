"""What does stage 2 add to SmolLM2, a pretrained language model of 135 M parameters?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.configured import Configured, Set, Test
from benchmarks.study import Arm, Study

PHONE = Test(
    env="phone", episodes=38,
    splits={"new parameters": "parameters", "new templates": "templates", "new apps": "apps"},
)  # fmt: skip
PAGES = Test(env="miniwob", episodes=49, splits={"reference pages": "reference"})
THREE = replace(PHONE, seeds=(11, 12, 13))
"""One agent alone plays the episodes of three evaluation seeds."""
BASE, STAGE1 = {"model.name": "base"}, {"model.name": "smollm2", "model.adapters": "smollm2-phone"}
SOLO: Set = {"team.agents": 1}
MEMBERS: Set = {
    "team.agents": 4, "team.temperatures": [0.2, 0.5, 0.6, 0.8], "team.vote": "probability",
}  # fmt: skip
VOTE: Set = {**MEMBERS, "team.rounds": 1, "team.edges": "none"}
DAG: Set = {**MEMBERS, "team.rounds": 2}
LEARNING: Set = {
    "train.iterations": 2, "train.episodes": 32, "train.shared_iterations": 2,
    "train.update.batch_size": 16, "train.update.lr": 2e-4,
}  # fmt: skip
OWN: Set = {"train.shared_iterations": 1}
"""In the last iteration, each agent gets an adapter of its own."""


def stage2(
    critic: str, *, team: Set = VOTE, pages: bool = False, more: Mapping[str, Any] | None = None
) -> Configured:
    """Stage 2 of SmolLM2; ``more``: other settings of the training."""
    return Configured(
        tests=(PHONE, PAGES) if pages else (PHONE,), set={**STAGE1, **team},
        training={**LEARNING, "critic.kind": critic, **(more or {})},
    )  # fmt: skip


def more_stage1(folder: Path, seed: int) -> Sequence[Sequence[str]]:
    """As many optimiser steps of stage 1 as stage 2 makes, from the same adapter."""
    corpus, out = str(folder / "corpus"), str(folder / "stage1")
    return (
        ("synthesize", "phone", "--out", corpus, "--walks", "220", "--prompt-format", "compact",
         "synthesize.levels=[3]", "synthesize.stray=0.12"),
        ("finetune", "smollm2", corpus, out, "--adapters", "smollm2-phone",
         "finetune.learning_rate=2e-4", "finetune.max_steps=80", f"finetune.seed={seed}",
         "finetune.batch_size=16", "finetune.accumulate=1", "finetune.preferences=false"),
    )  # fmt: skip


TALKED: Set = {"team.edges": "random"}
"""Trained on edges that are redrawn in each iteration, so that agents read messages."""
ARMS: Mapping[str, Arm] = {
    "base agent (0.19 M), one agent": Configured(tests=(THREE, PAGES), set={**BASE, **SOLO}),
    "stage 1, one agent": Configured(tests=(THREE, PAGES), set={**STAGE1, **SOLO}),
    "stage 1, vote of 4": Configured(tests=(PHONE, PAGES), set={**STAGE1, **VOTE}),
    "stage 2: rft, scripted critic, vote of 4": stage2("scripted", pages=True),
    "more stage 1, equal steps, vote of 4": Configured(
        tests=(PHONE, PAGES), set={**STAGE1, **VOTE}, commands=more_stage1
    ),
    "stage 2: rft, learned critic, vote of 4": stage2("learned", pages=True),
    "stage 2: rft, scripted critic and teacher, vote of 4": stage2(
        "scripted", more={"critic.teacher": "scripted"}
    ),
    "stage 2: rft, scripted critic, trained with messages, vote of 4": stage2(
        "scripted", more=TALKED
    ),
    "stage 2: rft, learned critic, trained with messages, vote of 4": stage2(
        "learned", more=TALKED
    ),
    "stage 2: rft, outcome critic, vote of 4": stage2("outcome", pages=True),
    "stage 2: rft, scripted critic, own adapters, vote of 4": stage2(
        "scripted", pages=True, more=OWN
    ),
    "stage 2: dpo, scripted critic, vote of 4": stage2(
        "scripted", more={"train.update.method": "dpo"}
    ),
    "stage 1, DAG, 2 rounds": Configured(tests=(PHONE,), set={**STAGE1, **DAG}),
    "stage 2: rft, scripted critic, DAG, 2 rounds": stage2("scripted", team=DAG),
    **{
        f"zero-shot, {form}, one agent": Configured(
            tests=(replace(PHONE, episodes=12),),
            set={"model.name": "smollm2", "model.prompt_format": form, **SOLO},
        )
        for form in ("compact", "json")
    },
}
STUDY = Study(
    arms=ARMS,
    trial=("base agent (0.19 M), one agent",),
    named=(),
    pooled=False,
    shown=(
        "base agent (0.19 M), one agent", "stage 1, vote of 4",
        "stage 2: rft, scripted critic, vote of 4", "more stage 1, equal steps, vote of 4",
        "stage 2: rft, learned critic, vote of 4",
    ),
    shown_on=("new parameters", "new apps", "reference pages"),
    note="The phone is simulated; the web pages are real. Intervals cover episodes, not the "
    "variation between seeds. Adapters of the upper layers alone were trained by an earlier "
    "program (commit 71d2855d). SmolLM2 needs: swarm-ui models pull smollm2.",
)  # fmt: skip
