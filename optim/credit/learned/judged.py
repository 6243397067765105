"""Judged replies, on which a learned critic is trained and tested.

A record is one episode: its screens, the replies to each screen, and a label for each reply.
Records are JSON lines. They contain their environment, task, seed and split, so that training data
can be separated from test data.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.files import LineFile, whole_lines, write_atomic
from swarm_ui.observation import Observation

Kind = Literal["own", "colleague", "solver", "adversary"]
"""Source of the proposal: the first agent of the team; another agent, which saw the elements in
another order or sampled; the environment's solver; the adversary. A reply that several proposed
counts for the first of these."""
KINDS: tuple[str, ...] = get_args(Kind)
Labels = Literal["solver", "outcome"]
"""Source of the labels. ``solver``: the environment graded each reply. ``outcome``: the executed
reply of a solved episode counts as right, that of another episode as wrong. The second rule is
often wrong, because a failed episode has right steps too."""
Purpose = Literal["train", "validation", "test"]


class JudgedReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply to a screen."""

    action: Action
    """The action, in the indices of the whole screen."""
    kind: Kind
    right: bool
    votes: int = 0
    """Agents of the team that proposed it in the last round."""
    logprob: float | None = None
    """Log-probability (nats) of the action under one agent with the screen's own order; ``None``:
    not known, or impossible there."""
    executed: bool = False


class JudgedScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision with its judged replies, each a different action."""

    step: int
    observation: Observation
    """The screen with its goal and history, without a picture."""
    replies: tuple[JudgedReply, ...]
    voters: int = 0
    """Agents that proposed something in the last round."""


class JudgedEpisode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The judged screens of one episode."""

    environment: str
    split: str
    """The split of the episode, such as ``train`` or ``new_apps``."""
    task: str
    seed: int
    labels: Labels
    success: bool
    screens: tuple[JudgedScreen, ...]


class JudgedHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a file of judged episodes: what the file is for, and how it was made."""

    judged_version: int = 1
    purpose: Purpose
    """What the episodes are for. Critics are trained only on files for ``train``."""
    settings: dict[str, object]
    """Settings of the collection, as JSON values."""


class JudgedFile:
    """A file of judged episodes that grows, one line an episode."""

    def __init__(self, path: Path, head: JudgedHead) -> None:
        """Open or create it.

        Raises:
            ConfigError: the file was created with another head, or cannot be read or written.
        """
        self._path = path
        self.episodes: list[JudgedEpisode] = []
        """All that the file holds."""
        try:
            if path.exists() and path.stat().st_size:
                found, self.episodes = read_judged(path)
                if found != head:
                    raise ConfigError(
                        f"'{path}' was collected for '{found.purpose}' with {found.settings}; this "
                        f"run is for '{head.purpose}' with {head.settings}. Use the same settings, "
                        "or another file"
                    )
            else:
                write_atomic(path, msgspec.json.encode(head) + b"\n")
            self._file = LineFile(path)
        except OSError as error:
            raise ConfigError(f"cannot write '{path}': {error}") from error

    @property
    def done(self) -> set[tuple[str, int]]:
        """Task and seed of each episode."""
        return {(episode.task, episode.seed) for episode in self.episodes}

    def add(self, episode: JudgedEpisode) -> None:
        """Append an episode. Raises ``ConfigError`` if it cannot be written."""
        try:
            self._file.append(msgspec.json.encode(episode))
        except OSError as error:
            raise ConfigError(
                f"cannot write '{self._path}': {error}. Earlier lines are saved; repeat the "
                "command to continue"
            ) from error
        self.episodes.append(episode)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_judged(
    path: Path, *, purpose: Purpose | None = None
) -> tuple[JudgedHead, list[JudgedEpisode]]:
    """The head and all episodes of a file. An incomplete last line is left out.

    Raises:
        ConfigError: the file does not exist, does not hold judged episodes, or has another purpose.
    """
    try:
        lines = whole_lines(path)
        head = msgspec.json.decode(lines[0] if lines else b"", type=JudgedHead)
        decoder = msgspec.json.Decoder(JudgedEpisode)
        episodes = [decoder.decode(line) for line in lines[1:]]
    except (OSError, msgspec.MsgspecError, UnicodeError, ValueError) as error:
        raise ConfigError(f"'{path}' is not a file of judged episodes: {error}") from error
    if purpose is not None and head.purpose != purpose:
        raise ConfigError(
            f"'{path}' was collected for '{head.purpose}', expected a file for '{purpose}'"
        )
    return head, episodes


def balanced(
    screens: Sequence[JudgedScreen], rng: random.Random, *, most: int = 6
) -> list[JudgedScreen]:
    """Screens with equal total numbers of right and wrong replies, in random order.

    At most ``most`` replies of each screen are kept: half of them right and half wrong, or more of
    one label if there are fewer of the other. Wrong replies of agents are preferred to those of an
    adversary, because a critic is used on replies of agents. Then replies of the more frequent
    label are left out at random until both are equal.
    """
    drawn = [(screen, _some(screen, rng, most)) for screen in screens]
    places = [(k, reply) for k, (_, kept) in enumerate(drawn) for reply in kept]
    right = [(k, id(reply)) for k, reply in places if reply.right]
    wrong = [(k, id(reply)) for k, reply in places if not reply.right]
    more, less = (right, wrong) if len(right) > len(wrong) else (wrong, right)
    left_out = set(rng.sample(more, len(more) - len(less)))
    found = []
    for k, (screen, kept) in enumerate(drawn):
        replies = [reply for reply in kept if (k, id(reply)) not in left_out]
        if replies:
            found.append(msgspec.structs.replace(screen, replies=tuple(replies)))
    rng.shuffle(found)
    return found


def _some(screen: JudgedScreen, rng: random.Random, most: int) -> list[JudgedReply]:
    right = [reply for reply in screen.replies if reply.right]
    wrong = [reply for reply in screen.replies if not reply.right]
    few = min(len(right), max(most // 2, most - len(wrong)))
    rng.shuffle(wrong)
    wrong.sort(key=lambda reply: reply.kind == "adversary")
    kept = [*rng.sample(right, few), *wrong[: most - few]]
    rng.shuffle(kept)
    return kept
