"""The tasks of Mind2Web as recordings: pages with pruned candidates and the recorded actions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.mind2web import metrics
from swarm_ui.environments.mind2web.candidate_ranks import RankedPage, Ranker, make_ranker
from swarm_ui.environments.mind2web.files import SPLITS, Files, Split
from swarm_ui.environments.mind2web.page import in_document_order, read_texts, to_element
from swarm_ui.environments.mind2web.raw_records import Candidate, Recorded, RecordedTask
from swarm_ui.environments.recorded.measures import RESAMPLES, Scores, answered_tasks
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    RecordedBenchmark,
    check_settings,
)
from swarm_ui.environments.recorded.web_elements import role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.records import Episode

ACTIONS: tuple[ActionType, ...] = ("click", "input_text", "select", "wait")
"""The actions that an observation lists. ``wait`` means "none of these"."""

_TO_OP: dict[str, str] = {"click": "CLICK", "input_text": "TYPE", "select": "SELECT"}
_FROM_OP: dict[str, ActionType] = {"CLICK": "click", "TYPE": "input_text", "SELECT": "select"}
_REPR = re.compile(r"\s*\[(?P<tag>[^\]]*)\]\s*(?P<label>.*?)\s*->\s*(?P<op>[A-Z]+)(?::\s*(?P<value>.*))?", re.DOTALL)  # fmt: skip  # noqa: E501


class Mind2Web(RecordedBenchmark["Mind2WebStep"]):
    """One split of the user's copy of Mind2Web.

    Nothing is read before the first task is needed, and then one task at a time is read. One
    instance can serve any number of environments.

    Args:
        root: a file, or a folder with the split's files anywhere below it.
        split: ``"test_task"``, ``"test_website"``, ``"test_domain"`` or ``"train"``.
        top_k: number of candidates that an agent sees of each page; ``None`` for all (hundreds).
        ranks: the ranks for the pruning: ``"built-in"`` (words shared with the goal; much worse
            than Mind2Web's own), ``"data"`` (``rank`` or ``score`` of each candidate), a file of
            JSON lines (see :mod:`swarm_ui.environments.mind2web.candidate_ranks`), or a mapping
            from the name of a step to ranks by node.
            Ranks begin with 0.
        words: maximum number of words of an element's text.
        screenshots: put a PNG into every observation (multimodal copy only).

    Raises:
        ConfigError: there is no such split, there are no data, or an argument is invalid.
    """

    def __init__(
        self,
        root: str | Path,
        split: Split = "test_task",
        *,
        top_k: int | None = 50,
        ranks: str | Path | Mapping[str, Mapping[str, int]] = "built-in",
        words: int = 12,
        screenshots: bool = False,
    ) -> None:
        if top_k is not None and top_k < 1:
            raise ConfigError(f"top_k must be at least 1, or None for all, got {top_k}")
        check_settings("Mind2Web", split, SPLITS, words)
        self.split = split
        self._top_k = top_k
        self._words = words
        self._ranker = make_ranker(ranks)
        self._files = Files(root, split, screenshots=screenshots)

    @property
    def name(self) -> str:
        shown = f"top {self._top_k} by {self._ranker.label}" if self._top_k else "all candidates"
        return f"mind2web {self.split} (offline, {shown})"

    @property
    def tasks(self) -> Sequence[str]:
        return self._files.tasks()

    def load(self, task: str) -> Sequence[Mind2WebStep]:
        found = self._files.load(task)
        return [
            Mind2WebStep(found, action, self._ranker, self._top_k, self._words)
            for action in found.actions
        ]

    def score(
        self, episodes: Sequence[Episode], *, seed: int = 0, resamples: int = RESAMPLES
    ) -> Scores:
        """The benchmark's metrics (see :mod:`swarm_ui.environments.mind2web.metrics`).

        Args:
            episodes: episodes that were played with these settings. An episode that ended with a
                fault is counted and left out. A step that was not reached counts as wrong.
            seed, resamples: settings of the bootstrap over tasks for the 95 % intervals.

        Raises:
            ConfigError: an episode shows pages that are not in these data.
        """
        played, counts = answered_tasks(self, episodes)
        scored = [
            metrics.TaskScore(
                task=one.task,
                steps=[step.score(action) for step, action in one.steps],
                kept=[bool(step.rights) for step, _ in one.steps],
            )
            for one in played
        ]
        return metrics.summarise(self.name, scored, counts, seed=seed, resamples=resamples)


class Mind2WebStep:
    """A recorded page. It implements
    :class:`~swarm_ui.environments.recorded.teacher_forced.GoldStep`."""

    def __init__(
        self, task: RecordedTask, recorded: Recorded, ranker: Ranker, top_k: int | None, words: int
    ) -> None:
        self._task = task
        self._recorded = recorded
        self._ranker = ranker
        self._top_k = top_k
        self._words = words

    @cached_property
    def _shown(self) -> tuple[tuple[Candidate, str], ...]:
        """The candidates that the pruning kept, in the order of the page, with their texts."""
        recorded = self._recorded
        listed = (*recorded.positives, *recorded.negatives)
        texts = read_texts(recorded.cleaned_html, {c.node for c in listed}, recorded.where)
        ordered = in_document_order(listed, texts)
        if self._top_k is not None:
            page = RankedPage(
                step=f"{self._task.annotation_id}_{recorded.uid}",
                goal=self._task.goal,
                candidates=ordered,
                texts=texts.words,
                where=recorded.where,
            )
            ranks = self._ranker.rank(page)
            kept = zip(ordered, ranks, strict=True)
            ordered = [candidate for candidate, rank in kept if rank < self._top_k]
        return tuple((c, texts.words.get(c.node, "")) for c in ordered)

    @cached_property
    def rights(self) -> tuple[str, ...]:
        """Nodes of the right elements that the pruning kept. May be empty."""
        shown = {candidate.node for candidate, _ in self._shown}
        return tuple(c.node for c in self._recorded.positives if c.node in shown)

    @cached_property
    def observation(self) -> Observation:
        reprs = self._task.reprs[: self._recorded.index]
        return Observation(
            goal=self._task.goal,
            elements=tuple(
                to_element(index, candidate, text, words=self._words)
                for index, (candidate, text) in enumerate(self._shown)
            ),
            app=self._task.website,
            history=tuple(
                past_of(text, f"{self._recorded.where}, action_reprs[{k}]")
                for k, text in enumerate(reprs)
            ),
            actions=ACTIONS,
            png=self._recorded.png,
        )

    @property
    def past(self) -> Past:
        index = self._recorded.index
        return past_of(self._task.reprs[index], f"{self._recorded.where}, action_reprs[{index}]")

    def score(self, action: Action | None) -> metrics.StepScore:
        """Element accuracy, operation F1 and step success of an answer."""
        recorded = metrics.operation(self._recorded.op, self._recorded.value)
        return metrics.step_score(self._predicted(action), self.rights, recorded)

    def right(self, action: Action) -> bool:
        return self.score(action)[2] == 1.0

    def expert(self) -> Action:
        if not self.rights:
            return NONE_OF_THESE
        index = next(i for i, (c, _) in enumerate(self._shown) if c.node == self.rights[0])
        kind = _FROM_OP[self._recorded.op]
        return Action(
            action_type=kind,
            target=self.observation.elements[index].label or None,
            index=index,
            text=None if kind == "click" else self._recorded.value,
        )

    def remark(self, action: Action) -> str:
        if action.action_type not in ACTIONS:
            return (
                f"'{action.action_type}' is not an operation of Mind2Web: taken as 'none of these'"
            )
        if action.action_type != "wait" and self._predicted(action) is None:
            return f"no element at ({action.x}, {action.y}): taken as 'none of these'"
        return ""

    def _predicted(self, action: Action | None) -> tuple[str, str] | None:
        """Node and operation of an answer; ``None`` for "none of these"."""
        if action is None or action.action_type not in _TO_OP:
            return None
        index = action.index if action.x is None else self._at(action.x, action.y or 0)
        if index is None or index >= len(self._shown):
            return None
        node = self._shown[index][0].node
        return node, metrics.operation(_TO_OP[action.action_type], action.text or "")

    def _at(self, x: int, y: int) -> int | None:
        """The smallest element at a point."""
        found = [
            ((e.bounds[2] - e.bounds[0]) * (e.bounds[3] - e.bounds[1]), e.index)
            for e in self.observation.elements
            if e.bounds and e.bounds[0] <= x < e.bounds[2] and e.bounds[1] <= y < e.bounds[3]
        ]
        return min(found)[1] if found else None


def past_of(text: str, where: str) -> Past:
    """A recorded action as an entry of the history. Its index is not valid on later pages.

    Raises:
        ConfigError: ``text`` is not of the form ``"[button]  Search -> CLICK"``.
    """
    found = _REPR.fullmatch(text)
    if found is None or found["op"] not in (*_FROM_OP, "HOVER", "ENTER"):
        raise ConfigError(f"{where}: expected '[tag] text -> OP: value', got {text!r}")
    kind = _FROM_OP.get(found["op"], "click")
    label = " ".join(found["label"].split())
    value = None if kind == "click" else found["value"] or ""
    action = Action(action_type=kind, target=label or None, index=0, text=value)
    return Past(action=action, role=role_of(found["tag"]), label=label)
