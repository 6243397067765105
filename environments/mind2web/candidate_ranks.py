"""Which candidates an agent gets to see: the best ``top_k`` by given ranks, or by our own.

Mind2Web's own ranks come from a fine-tuned model and are published as
``scores_all_data.pkl``. A pickle can run any code when it is opened, so this library opens none.
Turn it into JSON lines once, if you trust where you got it from:

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from swarm_ui.environments.mind2web.raw_records import Candidate
from swarm_ui.environments.recorded.mapped_lines import Lines
from swarm_ui.errors import ConfigError

_WORD = re.compile(r"\w+")
_SPOKEN = ("aria_label", "placeholder", "title", "alt", "label", "name", "value", "input_value")
_ACTED_ON = {"a": 1.0, "button": 1.0, "input": 1.0, "select": 1.0, "textarea": 1.0, "option": 0.5}


class Ranker(Protocol):
    """Gives each candidate of a step its rank; 0 is the best."""

    label: str
    """What a table says the candidates were pruned by."""

    def rank(
        self,
        step: str,
        goal: str,
        candidates: Sequence[Candidate],
        texts: Mapping[str, str],
        where: str,
    ) -> list[int]:
        """Ranks of the candidates, which stand in the order of the page.

        Args:
            step: ``"<annotation_id>_<action_uid>"``, as upstream names it.
            goal: the task.
            candidates: all of the step, right ones and others.
            texts: text of each candidate by its node.
            where: file and record, for errors.

        Raises:
            ConfigError: a candidate has no rank.
        """
        ...


class WordOverlap:
    """The built-in ranker: words a candidate shares with the goal, rare ones weighing more.

    A plain stand-in, far below Mind2Web's trained ranker: it loses many right elements, which
    counts as wrong. It knows neither the recorded action nor which candidate is right.
    """

    label = "the built-in word ranker"

    def rank(
        self,
        step: str,
        goal: str,
        candidates: Sequence[Candidate],
        texts: Mapping[str, str],
        where: str,
    ) -> list[int]:
        asked = set(_words(goal))
        spoken = [_words(_speech(c, texts.get(c.node, ""))) for c in candidates]
        holders = Counter(word for words in spoken for word in set(words))
        n = len(candidates)

        def score(place: int) -> float:
            words = spoken[place]
            shared = asked.intersection(words)
            rarity = sum(math.log(1 + n / holders[word]) for word in shared)
            # A long text shares words with anything.
            prior = _ACTED_ON.get(candidates[place].tag.lower(), 0.0)
            return rarity / (1 + math.log(1 + len(words))) + 0.5 * prior

        return _places([score(place) for place in range(n)])


class InData:
    """Ranks (or scores) that stand with the candidates in the data."""

    label = "ranks in the data"

    def rank(
        self,
        step: str,
        goal: str,
        candidates: Sequence[Candidate],
        texts: Mapping[str, str],
        where: str,
    ) -> list[int]:
        ranks = [c.rank for c in candidates if c.rank is not None]
        if len(ranks) == len(candidates):
            return ranks
        scores = [c.score for c in candidates if c.score is not None]
        if not ranks and len(scores) == len(candidates):
            return _places(scores)
        bare = next(c for c in candidates if c.rank is None and (ranks or c.score is None))
        raise ConfigError(
            f"{where}: candidate {bare.node} has neither 'rank' nor 'score', or some have the one "
            "and some the other. ranks='data' needs the same of all; "
            "otherwise give ranks= or use the built-in ranker"
        )


class Given:
    """Ranks or scores given apart from the data, by step and node."""

    def __init__(self, steps: Mapping[str, Mapping[str, float]], *, scores: bool, label: str):
        self.label = label
        self._steps = steps
        self._scores = scores

    def rank(
        self,
        step: str,
        goal: str,
        candidates: Sequence[Candidate],
        texts: Mapping[str, str],
        where: str,
    ) -> list[int]:
        return _looked_up(self._steps.get(step), candidates, self._scores, step, where)


class _Line(msgspec.Struct):
    id: str
    ranks: dict[str, float] | None = None
    scores: dict[str, float] | None = None


class _Name(msgspec.Struct):
    id: str


class RankFile:
    """Ranks or scores in JSON lines: ``{"id": step, "ranks": {node: rank}}``, or ``"scores"``.

    The file is indexed when the first step is asked for; a line is read when its step is.
    """

    def __init__(self, path: Path) -> None:
        self.label = f"the ranks of {path.name}"
        self._lines = Lines(path)
        self._places: dict[str, int] | None = None

    def rank(
        self,
        step: str,
        goal: str,
        candidates: Sequence[Candidate],
        texts: Mapping[str, str],
        where: str,
    ) -> list[int]:
        if self._places is None:
            names = (self._lines.read(k, _Name).id for k in range(len(self._lines)))
            self._places = {name: k for k, name in enumerate(names)}
        place = self._places.get(step)
        line = _Line(id=step) if place is None else self._lines.read(place, _Line)
        found = line.scores if line.ranks is None else line.ranks
        return _looked_up(found, candidates, line.ranks is None, step, where)


def ranker(ranks: object) -> Ranker:
    """The ranker for the ``ranks`` argument of :class:`~swarm_ui.environments.mind2web.Mind2Web`.

    Raises:
        ConfigError: it is none of the things that argument can be.
    """
    if ranks == "built-in":
        return WordOverlap()
    if ranks == "data":
        return InData()
    if isinstance(ranks, str | Path):
        path = Path(ranks).expanduser()
        if path.suffix in (".pkl", ".pickle"):
            raise ConfigError(
                f"{path}: a pickle can run any code when it is opened, so none is opened here. "
                "swarm_ui.environments.mind2web.candidate_ranks shows how to make JSON lines of it"
            )
        return RankFile(path)
    if isinstance(ranks, Mapping):
        for key in ("ranks", "scores"):
            steps = ranks.get(key)
            if isinstance(steps, Mapping):
                return Given(steps, scores=key == "scores", label="the given ranks")
    raise ConfigError(
        "ranks must be 'built-in', 'data', the path of a file of JSON lines, or a mapping "
        f"{{'ranks': {{step: {{node: rank}}}}}} (or 'scores'); got {type(ranks).__name__}"
    )


def _looked_up(
    found: Mapping[str, float] | None,
    candidates: Sequence[Candidate],
    scores: bool,
    step: str,
    where: str,
) -> list[int]:
    if found is None:
        raise ConfigError(f"{where}: the given ranks have no step '{step}'")
    missing = next((c.node for c in candidates if c.node not in found), None)
    if missing is not None:
        raise ConfigError(
            f"{where}: the given ranks of step '{step}' lack the candidate {missing}; "
            "they belong to another version of the data"
        )
    if scores:
        return _places([found[c.node] for c in candidates])
    return [int(found[c.node]) for c in candidates]


def _places(scores: Sequence[float]) -> list[int]:
    """Rank of each, the highest score first; equal ones in the order of the page."""
    ranks = [0] * len(scores)
    for rank, place in enumerate(sorted(range(len(scores)), key=lambda k: (-scores[k], k))):
        ranks[place] = rank
    return ranks


def _speech(candidate: Candidate, text: str) -> str:
    return " ".join([text, *(candidate.attributes.get(name, "") for name in _SPOKEN)])


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
