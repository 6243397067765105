"""Rankers of the candidates. An agent sees the best ``top_k`` candidates of a page.

Mind2Web's own ranks come from a fine-tuned model and are published as
``scores_all_data.pkl``. A pickle can run any code when it is opened, so this library opens none.
If you trust its source, convert it to JSON lines:

    import json, pickle
    found = pickle.load(open("scores_all_data.pkl", "rb"))
    with open("ranks.jsonl", "w") as file:
        for step, ranks in found["ranks"].items():
            file.write(json.dumps({"id": step, "ranks": ranks}) + "\\n")
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from swarm_ui.environments.mind2web.raw_records import Candidate
from swarm_ui.errors import ConfigError

_WORD = re.compile(r"\w+")
_TEXT_ATTRIBUTES = (
    "aria_label", "placeholder", "title", "alt", "label", "name", "value", "input_value",
)  # fmt: skip
_TAG_PRIORS = {"a": 1.0, "button": 1.0, "input": 1.0, "select": 1.0, "textarea": 1.0, "option": 0.5}


class RankedPage(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of a step, which a ranker orders."""

    step: str
    """``"<annotation_id>_<action_uid>"``, upstream's name of the step."""
    goal: str
    candidates: Sequence[Candidate]
    """All candidates, right and wrong ones, in the order of the page."""
    texts: Mapping[str, str]
    """Text of each candidate by its node."""
    where: str
    """File and number of the record, for error messages."""


class Ranker(NamedTuple):
    """Gives each candidate of a step its rank. Rank 0 is the best."""

    label: str
    """Name of the ranker in tables."""
    rank: Callable[[RankedPage], list[int]]
    """Ranks of the candidates. Raises ``ConfigError`` if a candidate has no rank."""


def _by_shared_words(page: RankedPage) -> list[int]:
    """Ranks by the words that a candidate shares with the goal, weighted by rarity.

    They are much worse than those of Mind2Web's trained ranker: they prune many right elements,
    and those steps count as wrong. Neither the recorded action nor the right elements are used.
    """
    asked = set(_words(page.goal))
    texts = [_words(_visible_text(c, page.texts.get(c.node, ""))) for c in page.candidates]
    document_counts = Counter(word for words in texts for word in set(words))
    n = len(page.candidates)

    def score(candidate: Candidate, words: list[str]) -> float:
        shared = asked.intersection(words)
        rarity = sum(math.log(1 + n / document_counts[word]) for word in shared)
        # A long text shares words with any goal.
        prior = _TAG_PRIORS.get(candidate.tag.lower(), 0.0)
        return rarity / (1 + math.log(1 + len(words))) + 0.5 * prior

    return _ranks_of(list(map(score, page.candidates, texts)))


def _in_data(page: RankedPage) -> list[int]:
    """Ranks or scores that the data give with the candidates."""
    candidates = page.candidates
    ranks = [c.rank for c in candidates if c.rank is not None]
    if len(ranks) == len(candidates):
        return ranks
    scores = [c.score for c in candidates if c.score is not None]
    if not ranks and len(scores) == len(candidates):
        return _ranks_of(scores)
    bare = next(c for c in candidates if c.rank is None and (ranks or c.score is None))
    raise ConfigError(
        f"{page.where}: candidate {bare.node} lacks 'rank' or 'score'; ranks='data' needs one of "
        "the two in all candidates of a page. Give ranks=, or use the built-in ranker"
    )


class _Line(msgspec.Struct):
    """The ranks of a step's candidates that are given apart from the data."""

    id: str
    ranks: dict[str, int]


def _given(ranks: Mapping[str, Mapping[str, int]], page: RankedPage) -> list[int]:
    found = ranks.get(page.step, {})
    missing = next((c.node for c in page.candidates if c.node not in found), None)
    if missing is not None:
        raise ConfigError(
            f"{page.where}: the given ranks of step '{page.step}' lack the candidate "
            f"{missing}; they belong to another version of the data"
        )
    return [found[c.node] for c in page.candidates]


def make_ranker(ranks: str | Path | Mapping[str, Mapping[str, int]]) -> Ranker:
    """The ranker for the ``ranks`` argument of :class:`~swarm_ui.environments.mind2web.Mind2Web`.

    Raises:
        ConfigError: it names no file of ranks.
    """
    if ranks == "built-in":
        return Ranker("the built-in word ranker", _by_shared_words)
    if ranks == "data":
        return Ranker("ranks in the data", _in_data)
    if not isinstance(ranks, str | Path):
        return Ranker("the given ranks", partial(_given, ranks))
    path = Path(ranks).expanduser()
    try:
        lines = msgspec.json.Decoder(_Line).decode_lines(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path}: expected 'built-in', 'data' or a file of JSON lines "
            f'{{"id": step, "ranks": {{node: rank}}}}: {error}'
        ) from error
    return Ranker(
        f"the ranks of {path.name}", partial(_given, {one.id: one.ranks for one in lines})
    )


def _ranks_of(scores: Sequence[float]) -> list[int]:
    """The rank of each score; the highest is 0. Equal scores keep the order of the page."""
    best_first = sorted(range(len(scores)), key=lambda k: -scores[k])
    return sorted(range(len(scores)), key=best_first.__getitem__)


def _visible_text(candidate: Candidate, text: str) -> str:
    return " ".join([text, *(candidate.attributes.get(name, "") for name in _TEXT_ATTRIBUTES)])


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
