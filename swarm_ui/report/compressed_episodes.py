"""Episodes in compressed chunks of a page. The browser unpacks a chunk when it is opened."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from swarm_ui.report.contents import Episodes, EpisodeSet
from swarm_ui.report.html import Markup
from swarm_ui.report.viewer import compact, index_entry, viewer_episode
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.records import Episode, StepRecord

PNG_BUDGET = 8_000_000
"""Maximum size of screenshots in a report, in bytes. Later screens show their elements instead."""
EPISODE_BUDGET = 60_000_000
"""Maximum size of compressed episodes in a report, in bytes. The page counts the others."""
_CHUNK = 400_000  # characters of JSON: unpacked in a few hundredths of a second

Key = tuple[str, str, int, str, bool | None, int]


class Failed(msgspec.Struct, frozen=True):
    """An episode of the viewer that was not solved."""

    set: str
    number: int
    """Number of the episode, from 1, as in its address."""
    why: FailureClass
    task: str
    seed: int
    steps: int


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the viewer's script."""

    index: str
    """Compressed: an entry for each episode, see :func:`swarm_ui.report.viewer.index_entry`."""
    chunks: tuple[str, ...]
    """Compressed: lists of episodes, in the order of the index."""
    pictures: tuple[str, ...]
    """Screenshots as base64, each once."""
    episodes: int
    left_out: int
    """The number of episodes beyond the budget."""
    bare: int
    """The number of screenshots beyond the budget."""
    failed: tuple[Failed, ...] = ()
    """The shown episodes that were not solved."""


def packed(
    sets: Iterable[EpisodeSet],
    *,
    png_budget: int = PNG_BUDGET,
    episode_budget: int = EPISODE_BUDGET,
) -> Packed:
    """Compress episodes. No more than one chunk of them is held in memory uncompressed."""
    pictures = _Pictures(png_budget)
    index: list[list[object]] = []
    chunks: list[str] = []
    waiting: list[str] = []
    failed: list[Failed] = []
    size = left_out = 0
    for part in sets:
        for place, episode in enumerate(part.episodes, start=1):
            if size > episode_budget:
                left_out += 1
                continue
            index.append(index_entry(episode, part, place, len(chunks)))
            failed += _failed(episode, part.name, len(index))
            waiting.append(compact(viewer_episode(episode, pictures.keep)))
            if sum(map(len, waiting)) > _CHUNK:
                chunks.append(squeezed(f"[{','.join(waiting)}]"))
                size, waiting = size + len(chunks[-1]), []
    if waiting:
        chunks.append(squeezed(f"[{','.join(waiting)}]"))
    return Packed(
        index=squeezed(compact(index)),
        chunks=tuple(chunks),
        pictures=tuple(pictures.kept),
        episodes=len(index),
        left_out=left_out,
        bare=pictures.bare,
        failed=tuple(failed),
    )


def squeezed(text: str) -> str:
    """ASCII text, compressed by gzip, as base64. Equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode()


def elements(data: Packed) -> Iterator[Markup]:
    """Script elements that hold the pieces. Base64 has no character that could end one."""
    yield _element("index", data.index)
    yield from (_element(f"chunk-{k}", text) for k, text in enumerate(data.chunks))
    yield from (_element(f"picture-{k}", text) for k, text in enumerate(data.pictures))


def joined(sample: Iterable[Episode], sets: Iterable[EpisodeSet]) -> tuple[EpisodeSet, ...]:
    """The sets of episodes, with equal episodes replaced by those of the sample.

    A sample often has screenshots, which trace files lack. Its other episodes come first.
    """
    kept, parts = tuple(sample), tuple(sets)
    if not kept:
        return parts
    given: dict[Key, list[int]] = {}
    for number, episode in enumerate(kept):
        given.setdefault(_key(episode), []).append(number)

    def place(episode: Episode) -> int | None:
        """The number of the episode in the sample that is equal to this one; ``None`` if there is
        none."""
        alike = given.get(_key(episode), ())
        return next((n for n in alike if _bare(kept[n]) == _bare(episode)), None)

    def swapped(part: EpisodeSet) -> Iterator[Episode]:
        for episode in part.episodes:
            found = place(episode)
            yield episode if found is None else kept[found]

    known = {place(episode) for part in parts for episode in part.episodes}
    alone = tuple(episode for number, episode in enumerate(kept) if number not in known)
    name = "sample" if parts else ""
    own = (EpisodeSet(name=name, episodes=alone),) if alone else ()
    shown = (Episodes(partial(swapped, part), len(part.episodes)) for part in parts)
    pairs = zip(parts, shown, strict=True)
    return (*own, *(msgspec.structs.replace(part, episodes=held) for part, held in pairs))


class _Pictures:
    """Keeps each screenshot once, up to the budget."""

    def __init__(self, budget: int) -> None:
        self._left = budget
        self._number: dict[bytes, int] = {}
        self.kept: list[str] = []
        self.bare = 0

    def keep(self, png: bytes) -> int | None:
        digest = hashlib.sha256(png).digest()
        if digest in self._number:
            return self._number[digest]
        if len(png) > self._left:
            self.bare += 1
            return None
        self._left -= len(png)
        self._number[digest] = len(self.kept)
        self.kept.append(base64.b64encode(png).decode())
        return self._number[digest]


def _failed(episode: Episode, name: str, number: int) -> list[Failed]:
    """The entry of an episode that was not solved; none for a solved one."""
    why = failure_class(episode)
    if why is None:
        return []
    return [Failed(name, number, why, episode.task, episode.seed, len(episode.steps))]


def _key(episode: Episode) -> Key:
    steps = len(episode.steps)
    return episode.environment, episode.task, episode.seed, episode.policy, episode.success, steps


def _bare(episode: Episode) -> list[StepRecord]:
    """The steps of an episode without screenshots. They distinguish episodes with equal keys: the
    same job may be played several times, such as in two iterations of a training."""
    replace = msgspec.structs.replace
    return [
        replace(s, trace=replace(s.trace, observation=replace(s.trace.observation, png=None)))
        for s in episode.steps
    ]


def _element(name: str, text: str) -> Markup:
    return Markup(f'<script type="text/plain" id="{name}">{text}</script>\n')
