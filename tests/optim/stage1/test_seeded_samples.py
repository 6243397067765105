"""Equal seeds give the same samples in every version: streams, window samples and corpora."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest
from corpus_fakes import scripted_corpus

pytest.importorskip("torch")

from msgspec.structs import replace

from swarm_ui.action import Abstain
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
from swarm_ui.optim.stage1.synthesis.demonstrations import demonstrate
from swarm_ui.optim.stage1.synthesis.screens import ActionSample, QuestionSample
from swarm_ui.optim.stage1.synthesis.window_samples import WindowStream, labelled_screens
from swarm_ui.prompts import decision_chat

WORDS = ("apple", "river", "stone", "paper", "green", "light")


def digest(samples: Iterable[ActionSample | QuestionSample]) -> str:
    """A hash of the prompts and answers; it does not depend on the names of classes. The prompts
    offer every kind of action, whatever the screen lists."""
    found = sha256()
    for sample in samples:
        screen = replace(sample.decision.observation, actions=())
        texts = [t.content for t in decision_chat(replace(sample.decision, observation=screen))]
        if isinstance(sample, QuestionSample):
            texts.append(repr(sample.questions))
        else:
            action = sample.action
            texts.append("abstain" if isinstance(action, Abstain) else action.json())
        found.update("\n".join(texts).encode())
    return found.hexdigest()[:16]


def test_the_stream_of_the_base_agent() -> None:
    steps = asyncio.run(
        demonstrate(PhoneEnvironment(), task="notes-create", seed=3, rng=random.Random(0))
    )
    stream = Stream(7, WORDS, Mix(), steps)
    assert digest(stream.draw() for _ in range(600)) == "21cf27a68c98d7ce"


def test_window_samples() -> None:
    phone = PhoneEnvironment(long=True, memory=1)
    pool = asyncio.run(labelled_screens(phone, task="contacts-add", seed=1, rng=random.Random(0)))
    stream = WindowStream(3, pool, Stream(3, WORDS, Mix()))
    assert digest(stream.draw() for _ in range(300)) == "99ef05bb214b9b7a"


async def test_a_corpus(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 4)
    found = [
        sha256((tmp_path / "c" / name).read_bytes()).hexdigest()[:16]
        for name in ("samples.jsonl", "journal.jsonl")
    ]
    assert found == ["a8a12667d66700b1", "a9419b1793241305"]
