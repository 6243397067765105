"""Records of a corpus: samples of three levels, each with its origin."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal

import msgspec

from swarm_ui.model import ChatMessage

CORPUS_VERSION = 1

Level = Literal[1, 2, 3]
LEVELS: tuple[Level, ...] = (1, 2, 3)
"""1: questions about screens; 2: instructions of one step; 3: preferences."""

Job = tuple[str, int]
"""Task and seed of a walk."""

Kind = Literal["screen", "element", "instruction", "preference"]


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    environment: str
    task: str
    seed: int
    step: int
    """Step of the walk with this screen, from 0."""
    agent: str
    """Model that wrote the response."""
    adversary: str = ""
    """Model that wrote the rejected response."""
    critic: str = ""
    """Name of the critic that gave the scores."""
    prompt: str = ""
    """First 16 hex digits of the SHA-256 of the transcript of the prompt that the agent answered,
    as in ``calls.jsonl``; empty for an agent without prompts."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, a response to learn, and for preferences a rejected response."""

    version: int
    id: str
    """Hash of level, prompt and responses: equal for equal samples."""
    level: Level
    """1: a question about the screen; 2: an instruction of one step; 3: a preference."""
    kind: Kind
    chat: tuple[ChatMessage, ...]
    """The prompt; for levels 2 and 3 it is the prompt of an agent that acts."""
    response: str
    rejected: str | None = None
    """The adversary's response to the same prompt; level 3 only."""
    score: float | None = None
    """The critic's, in [0, 1]; ``None``: without a critic."""
    rejected_score: float | None = None
    heard: int = 0
    """Number of messages of neighbours in the prompt."""
    alike: str
    """Hash that is equal for samples that differ only in the sequence of the elements."""
    origin: Origin


class WalkResult(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one walk through an environment."""

    task: str
    seed: int
    success: bool | None
    """``None``: the environment or an endpoint failed."""
    steps: int
    fault: str | None = None
    samples: tuple[Sample, ...] = ()
    dropped: dict[str, int] = {}
    """Number of dropped items, by ``"level <n>: <reason>"``."""


def sample_id(
    level: Level, chat: Iterable[ChatMessage], response: str, rejected: str | None
) -> str:
    texts = [str(level), *(f"{turn.role}\x1f{turn.content}" for turn in chat), response]
    return short_hash("\x1e".join([*texts, rejected or ""]))


def short_hash(text: str) -> str:
    """16 hex digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
