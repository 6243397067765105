"""The tasks of Mind2Web as recordings: pages with pruned candidates and the recorded actions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.mind2web import metrics, page
from swarm_ui.environments.mind2web.files import Operation, Read, Recorded, find_tasks, read_task
from swarm_ui.environments.recorded.scores import (
    RESAMPLES,
    MeasureInput,
    Scores,
    answered_tasks,
    measured,
)
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
)
from swarm_ui.environments.recorded.web_elements import role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.trace.records import Episode

Split = Literal["train", "test_task", "test_website", "test_domain"]
SPLITS: tuple[str, ...] = get_args(Split)
ACTIONS: tuple[ActionType, ...] = ("click", "input_text", "select", "wait")
"""The actions that an observation lists. ``wait`` means "none of these"."""
Ranks = Mapping[str, Mapping[str, int]]
"""From the name of a step, ``"<annotation_id>_<action_uid>"``, to ranks by node; 0 is the best."""

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
        ranks: the ranks for the pruning. ``None``: by words shared with the goal, much worse than
            Mind2Web's own. Those are the ``"ranks"`` in its ``scores_all_data.pkl``; a pickle can
            run any code when it is opened, so open it yourself if you trust its source.
        screenshots: put a PNG into every observation (multimodal copy only).

    Raises:
        ConfigError: there is no such split.
    """

    def __init__(
        self,
        root: str | Path,
        split: Split = "test_task",
        *,
        top_k: int | None = 50,
        ranks: Ranks | None = None,
        screenshots: bool = False,
    ) -> None:
        if split not in SPLITS:
            raise ConfigError(f"Mind2Web has the splits {', '.join(SPLITS)}; got {split!r}")
        self._root, self._split = Path(root).expanduser(), split
        self._top_k, self._ranks, self._screenshots = top_k, ranks, screenshots
        ranked = "the built-in word ranker" if ranks is None else "the given ranks"
        shown = f"top {top_k} by {ranked}" if top_k else "all candidates"
        self.name = f"mind2web {split} (offline, {shown})"

    @cached_property
    def _records(self) -> dict[str, list[Read]]:
        return find_tasks(self._root, self._split)

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._records)

    def load(self, task: str, seed: int = 0) -> Sequence[Mind2WebStep]:
        if task not in self._records:
            raise ConfigError(f"{self._root}: no task {task!r} among {len(self._records)}")
        try:
            rows = read_task(task, self._records[task], screenshots=self._screenshots)
            return [self._step(row) for row in rows]
        except ConfigError as error:
            raise ConfigError(f"{self._root}: {error}") from error

    def _step(self, row: Recorded) -> Mind2WebStep:
        listed = (*row.pos_candidates, *row.neg_candidates)
        texts = page.read_texts(row.cleaned_html, {c.node for c in listed})
        shown = page.in_page_order(listed, texts)
        if self._top_k is not None:
            step = f"{row.annotation_id}_{row.action_uid}"
            if self._ranks is None:
                ranks: Mapping[str, int] = page.ranks_by_words(row.confirmed_task, shown, texts)
            else:
                ranks = self._ranks.get(step, {})
            if missing := [c.node for c in shown if c.node not in ranks]:
                raise ConfigError(
                    f"the given ranks of step '{step}' lack the candidate {missing[0]}; they "
                    "belong to another version of the data"
                )
            shown = [c for c in shown if ranks[c.node] < self._top_k]
        nodes = tuple(c.node for c in shown)
        rights = tuple(c.node for c in row.pos_candidates if c.node in nodes)
        elements = tuple(
            page.to_element(k, one, texts.get(one.node, "")) for k, one in enumerate(shown)
        )
        told = tuple(_past(text) for text in row.action_reprs[: row.target_action_index + 1])
        return Mind2WebStep(
            observation=Observation(
                goal=row.confirmed_task,
                elements=elements,
                app=row.website,
                history=told[:-1],
                actions=ACTIONS,
                png=row.screenshot,
            ),
            expert=_expert(row.operation, elements[nodes.index(rights[0])] if rights else None),
            past=told[-1],
            nodes=nodes,
            rights=rights,
            operation=metrics.operation(row.operation.op, row.operation.value or ""),
        )

    def score(self, episodes: Sequence[Episode], *, resamples: int = RESAMPLES) -> Scores:
        """The benchmark's metrics (see :mod:`swarm_ui.environments.mind2web.metrics`).

        Args:
            episodes: episodes that were played with these settings. An episode that ended with a
                fault is counted and left out. A step that was not reached counts as wrong.
            resamples: number of draws of the bootstrap over tasks for the 95 % intervals.

        Raises:
            ConfigError: an episode shows pages that are not in these data.
        """
        played, counts = answered_tasks(self, episodes)
        steps: dict[str, list[metrics.StepScore]] = defaultdict(list)
        solved: dict[str, list[float]] = defaultdict(list)
        kept: dict[str, list[float]] = defaultdict(list)
        for task, answers in played:
            scores = [step.score(action) for step, action in answers]
            steps[task] += scores
            solved[task].append(float(all(score[2] == 1.0 for score in scores)))
            kept[task] += [float(bool(step.rights)) for step, _ in answers]
        inputs = []
        for place, (name, key) in enumerate(metrics.NAMES.items()):
            values = {task: [score[place] for score in scores] for task, scores in steps.items()}
            inputs += [
                MeasureInput(name=f"{name} (macro)", key=f"marco_{key}", values=values, macro=True),
                MeasureInput(name=f"{name} (micro)", key=key, values=values),
            ]
        inputs += [
            MeasureInput(name="task success", values=solved, macro=True),
            MeasureInput(name="right element kept by pruning", values=kept),
        ]
        measures = measured(inputs, resamples=resamples)
        return Scores(title=self.name, measures=measures, counts=counts)


class Mind2WebStep(GoldStep, frozen=True, kw_only=True):
    """A recorded page, with the candidates that the pruning kept."""

    nodes: tuple[str, ...]
    """Node of each element."""
    rights: tuple[str, ...]
    """Nodes of the right elements that the pruning kept. May be empty."""
    operation: str
    """The recorded operation, as the official scorer compares it."""

    def score(self, action: Action | None) -> metrics.StepScore:
        """Element accuracy, operation F1 and step success of an answer."""
        return metrics.step_score(self._predicted(action), self.rights, self.operation)

    def right(self, action: Action) -> bool:
        return self.score(action)[2] == 1.0

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
        element = self.observation.element(action.index)
        if action.x is not None:
            element = self._at(action.x, action.y or 0)
        if element is None:
            return None
        operation = metrics.operation(_TO_OP[action.action_type], action.text or "")
        return self.nodes[element.index], operation

    def _at(self, x: float, y: float) -> Element | None:
        """The smallest element at a point, preferably one that can be acted on."""

        def size(element: Element) -> tuple[bool, int]:
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            return not (element.clickable or element.editable), (right - left) * (bottom - top)

        hit = []
        for element in self.observation.elements:
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            if left <= x < right and top <= y < bottom:
                hit.append(element)
        return min(hit, key=size, default=None)


def _expert(done: Operation, element: Element | None) -> Action:
    if element is None:
        return NONE_OF_THESE
    return Action(
        action_type=_FROM_OP[done.op],
        target=element.label or None,
        index=element.index,
        text=None if done.op == "CLICK" else done.value or "",
    )


def _past(text: str) -> Past:
    """A recorded action as an entry of the history. Its index is not valid on later pages."""
    found = _REPR.fullmatch(text)
    if found is None or found["op"] not in _FROM_OP:
        raise ConfigError(f"expected '[tag] text -> OP: value' in action_reprs, got {text!r}")
    kind = _FROM_OP[found["op"]]
    label = " ".join(found["label"].split())
    value = None if kind == "click" else found["value"] or ""
    action = Action(action_type=kind, target=label or None, index=0, text=value)
    return Past(action=action, role=role_of(found["tag"]), label=label)
