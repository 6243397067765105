"""Train the included adapter for SmolLM2 again: some hours on two cores.

    python demos/train_adapter.py --out runs/adapter

The first training takes a third of the corpora, about as many samples as the included adapter was
trained on (which changes only the layers 8 to 29). Repeat the command to continue after an
interruption. glibc should keep freed memory, because the next step allocates it again: the target
``make adapter`` sets GLIBC_TUNABLES for that.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder of demos.base_agent

from demos.base_agent.environment import InventedScreens
from swarm_ui.environment import Environment
from swarm_ui.environments.phone.benchmark import Invented, Phone
from swarm_ui.experiment.benchmarks import held_out_rule
from swarm_ui.nodes import model_folder
from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
from swarm_ui.optim.stage1 import (
    CorpusConfig,
    FinetuneConfig,
    HeldOut,
    Models,
    finetune,
    synthesize,
)

BROAD = CorpusConfig(
    prompt_format="compact", reasons=False, messages=0.15, screens=1, questions=1, instructions=1
)
WALKED = replace(BROAD, levels=(2, 3), stray=0.12)
FURTHER = CorpusConfig(prompt_format="compact", reasons=False, levels=(3,), stray=0.12, seed=7)
TRAINING = FinetuneConfig(preferences=False, batch_size=16, accumulate=1, max_length=320)


async def from_walks(name: str, count: int, folder: Path, config: CorpusConfig) -> None:
    """A corpus of walks on the phone, or on 512 invented phones with many wordings."""
    env = Invented(devices=512) if name == "invented" else Phone()
    async with env.open("train") as opened:
        names = await env.task_names("train", opened)
        jobs = env.training_jobs(names, count, random.Random(config.seed))
        await make(opened.make, jobs, folder, held_out_rule([env]), config)


async def from_screens(task: str, count: int, folder: Path) -> None:
    """A corpus of invented pages or devices, one action each."""
    words = [word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2]
    rng = random.Random(0)
    jobs = [(task, rng.randrange(2**31)) for _ in range(count)]
    await make(lambda: InventedScreens(words), jobs, folder, HeldOut(), BROAD)


async def make(
    environment: Callable[[], Environment], jobs: list[tuple[str, int]], folder: Path,
    held_out: HeldOut, config: CorpusConfig,
) -> None:  # fmt: skip
    print(f"{folder}: {len(jobs)} walks", flush=True)
    await synthesize(environment, Models.scripted(), jobs, folder, held_out=held_out, config=config)


async def corpora(out: Path, scale: float = 1.0) -> None:
    """All corpora; ``scale``: share of the walks to make."""
    for name, count, config in (
        ("phone", 1700, WALKED), ("invented", 2700, WALKED),
        ("further-phone", 330, FURTHER), ("further-invented", 110, FURTHER),
    ):  # fmt: skip
        place = name.removeprefix("further-")
        await from_walks(place, max(1, round(scale * count)), out / name, config)
    for task, count in (("pages", 1600), ("devices", 600)):
        await from_screens(task, max(1, round(scale * count)), out / task)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/adapter"))
    given = parser.parse_args()
    out, model = given.out, model_folder("smollm2")
    asyncio.run(corpora(out))
    broad = replace(TRAINING, epochs=0.35, learning_rate=1e-3)
    folders = [out / name for name in ("phone", "invented", "pages", "devices")]
    finetune(model, folders, out / "trained", config=broad, name="smollm2")
    # After the broad corpus, 120 steps at a fifth of the rate, two thirds on the phone itself.
    further = replace(TRAINING, learning_rate=2e-4, max_steps=120, seed=1)
    folders = [out / "further-phone", out / "further-invented"]
    finetune(
        model, folders, out / "further", config=further, name="smollm2",
        adapter=out / "trained" / "final",
    )  # fmt: skip


if __name__ == "__main__":
    main()
