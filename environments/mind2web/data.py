"""The tasks of Mind2Web as recordings: pages with pruned candidates and the recorded actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.mind2web import metrics, page
from swarm_ui.environments.mind2web.records import Candidate, Files, Recorded
from swarm_ui.environments.recorded.scores import RESAMPLES, Scores, answered_tasks
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    RecordedBenchmark,
    check_split,
    element_at,
)
from swarm_ui.environments.recorded.web_elements import role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.records import Episode

Split = Literal["train", "test_task", "test_website", "test_domain"]
SPLITS: tuple[str, ...] = get_args(Split)
ACTIONS: tuple[ActionType, ...] = ("click", "input_text", "select", "wait")
"""The actions that an observation lists. ``wait`` means "none of these"."""

_TO_OP: dict[str, str] = {"click": "CLICK", "input_text": "TYPE", "select": "SELECT"}
_FROM_OP: dict[str, ActionType] = {
    "CLICK": "click", "HOVER": "click", "ENTER": "click", "TYPE": "input_text", "SELECT": "select",
}  # fmt: skip
_REPR = re.compile(
    r"\s*\[(?P<tag>[^\]]*)\]\s*(?P<label>.*?)\s*->\s*(?P<op>[A-Z]+)(?::\s*(?P<value>.*))?",
    re.DOTALL,
)


class Mind2Web(RecordedBenchmark["Mind2WebStep"]):
    """One split of the user's copy of Mind2Web.

    Nothing is read before the first task is needed, and then one task at a time is decoded. One
    instance can serve any number of environments.

    Args:
        root: a file, or a folder with the split's files anywhere below it.
        split: ``"test_task"``, ``"test_website"``, ``"test_domain"`` or ``"train"``.
        top_k: number of candidates that an agent sees of each page; ``None`` for all (hundreds).
        ranks: the ranks for the pruning: ``"built-in"`` (words shared with the goal; much worse
            than Mind2Web's own), a file of JSON lines (see
            :mod:`swarm_ui.environments.mind2web.page`), or its contents as a mapping.
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
        ranks: str | Path | page.Ranks = "built-in",
        words: int = 12,
        screenshots: bool = False,
    ) -> None:
        if (top_k is not None and top_k < 1) or words < 1:
            raise ConfigError(f"top_k and words must be at least 1, got {top_k} and {words}")
        check_split("Mind2Web", split, SPLITS)
        self.split, self.top_k, self.words = split, top_k, words
        self.ranks: page.Ranks | None = None
        ranked = "the built-in word ranker"
        if isinstance(ranks, str | Path) and ranks != "built-in":
            self.ranks = page.read_ranks(Path(ranks).expanduser())
            ranked = f"the ranks of {Path(ranks).name}"
        elif not isinstance(ranks, str | Path):
            self.ranks, ranked = ranks, "the given ranks"
        shown = f"top {top_k} by {ranked}" if top_k else "all candidates"
        self.name = f"mind2web {split} (offline, {shown})"
        self._files = Files(root, split, screenshots=screenshots)

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._files.tasks)

    def load(self, task: str, seed: int = 0) -> Sequence[Mind2WebStep]:
        return [Mind2WebStep(self, recorded) for recorded in self._files.load(task)]

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

    def __init__(self, data: Mind2Web, recorded: Recorded) -> None:
        self._data = data
        self._recorded = recorded

    @cached_property
    def _shown(self) -> tuple[tuple[Candidate, str], ...]:
        """The candidates that the pruning kept, in the order of the page, with their texts."""
        recorded, data = self._recorded, self._data
        listed = (*recorded.pos_candidates, *recorded.neg_candidates)
        texts = page.read_texts(recorded.cleaned_html, {c.node for c in listed}, recorded.where)
        ordered = page.in_page_order(listed, texts)
        if data.top_k is not None:
            if data.ranks is None:
                ranks = page.ranks_by_words(recorded.confirmed_task, ordered, texts)
            else:
                step = f"{recorded.annotation_id}_{recorded.action_uid}"
                ranks = page.given_ranks(data.ranks, step, ordered)
            ordered = [c for c, rank in zip(ordered, ranks, strict=True) if rank < data.top_k]
        return tuple((c, texts.get(c.node, "")) for c in ordered)

    @cached_property
    def rights(self) -> tuple[str, ...]:
        """Nodes of the right elements that the pruning kept. May be empty."""
        shown = {candidate.node for candidate, _ in self._shown}
        return tuple(c.node for c in self._recorded.pos_candidates if c.node in shown)

    @cached_property
    def observation(self) -> Observation:
        return Observation(
            goal=self._recorded.confirmed_task,
            elements=tuple(
                page.to_element(index, candidate, text, words=self._data.words)
                for index, (candidate, text) in enumerate(self._shown)
            ),
            app=self._recorded.website,
            history=tuple(map(self._past, range(self._recorded.target_action_index))),
            actions=ACTIONS,
            png=self._recorded.screenshot,
        )

    @property
    def past(self) -> Past:
        return self._past(self._recorded.target_action_index)

    def score(self, action: Action | None) -> metrics.StepScore:
        """Element accuracy, operation F1 and step success of an answer."""
        done = self._recorded.operation
        recorded = metrics.operation(done.op, done.value or "")
        return metrics.step_score(self._predicted(action), self.rights, recorded)

    def right(self, action: Action) -> bool:
        return self.score(action)[2] == 1.0

    def expert(self) -> Action:
        if not self.rights:
            return NONE_OF_THESE
        index = next(i for i, (c, _) in enumerate(self._shown) if c.node == self.rights[0])
        done = self._recorded.operation
        return Action(
            action_type=_FROM_OP[done.op],
            target=self.observation.elements[index].label or None,
            index=index,
            text=None if done.op == "CLICK" else done.value or "",
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
        screen = self.observation
        if action.x is None:
            element = screen.element(action.index)
        else:
            element = element_at(screen, action.x, action.y or 0)
        if element is None:
            return None
        node = self._shown[element.index][0].node
        return node, metrics.operation(_TO_OP[action.action_type], action.text or "")

    def _past(self, index: int) -> Past:
        """A recorded action as an entry of the history. Its index is not valid on later pages."""
        text = self._recorded.action_reprs[index]
        found = _REPR.fullmatch(text)
        if found is None or found["op"] not in _FROM_OP:
            raise ConfigError(
                f"{self._recorded.where}: expected '[tag] text -> OP: value' in "
                f"action_reprs[{index}], got {text!r}"
            )
        kind = _FROM_OP[found["op"]]
        label = " ".join(found["label"].split())
        value = None if kind == "click" else found["value"] or ""
        action = Action(action_type=kind, target=label or None, index=0, text=value)
        return Past(action=action, role=role_of(found["tag"]), label=label)
