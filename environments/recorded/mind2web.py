"""Mind2Web offline: next-action prediction on recorded web pages, from your copy of the data.

Get the data yourself, raw or as parquet; docs/howto/mind2web.md says where, and has an example.
**Do not redistribute unzipped test files**, nor traces of episodes on them.

Agents answer with ``click``, ``input_text`` or ``select`` on one of the shown candidates, or with
``wait`` for "none of these".

The metrics are those of OSU-NLP-Group/Mind2Web, ``action_prediction/metric.py``, reimplemented from
its behaviour, with its special cases:

- A step counts 0 for the element, the operation and the step if the pruning removed all right
  elements, if there is no answer, or if the answer is "none of these".
- Any right element is accepted. An ancestor of it is right if the data list it as right.
- Operation F1 compares the *sets* of whitespace-separated words of ``"OP value"``, with case. Only
  the first line of the value counts. Two empty sets have F1 1.0. A click has no value.
- Macro, which the paper reports, is the mean over tasks of each task's mean (``marco`` in keys).
- Task success is the share of tasks without a wrong step: upstream's ``error_ratio`` of 0.

One difference changes the numbers: upstream asks in groups of five candidates and then among the
winners. Here an agent sees all ``top_k`` candidates at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args
from xml.etree import ElementTree

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.recorded.mind2web_pages import (
    Read,
    Recorded,
    find_tasks,
    read_task,
    read_texts,
    shown_candidates,
    to_element,
)
from swarm_ui.environments.recorded.scores import Column
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
)
from swarm_ui.environments.recorded.web_elements import role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past

Split = Literal["train", "test_task", "test_website", "test_domain"]
SPLITS: tuple[str, ...] = get_args(Split)
ACTIONS: tuple[ActionType, ...] = ("click", "input_text", "select", "wait")
"""The actions that an observation lists. ``wait`` means "none of these"."""
StepScore = tuple[float, float, float]
"""Element accuracy, operation F1 and step success of a step."""

_NAMES = {
    "element accuracy": "element_acc",
    "operation F1": "action_f1",
    "step success": "step_acc",
}
"""Names of these scores, and upstream's keys."""
_COLUMNS = (
    *(
        column
        for name, key in _NAMES.items()
        for column in (
            Column(f"{name} (macro)", name, f"marco_{key}", macro=True),
            Column(f"{name} (micro)", name, key),
        )
    ),
    Column("task success", "task success", macro=True),
    Column("right element kept by pruning", "kept"),
)
_TO_OP: dict[str, str] = {"click": "CLICK", "input_text": "TYPE", "select": "SELECT"}
_FROM_OP: dict[str, ActionType] = {
    "CLICK": "click", "HOVER": "click", "ENTER": "click", "TYPE": "input_text", "SELECT": "select",
}  # fmt: skip
_REPR = re.compile(
    r"\s*\[(?P<tag>[^\]]*)\]\s*(?P<label>.*?)\s*->\s*(?P<op>[A-Z]+)(?::\s*(?P<value>.*))?",
    re.DOTALL,
)


def synthetic(*, flattened: bool = False) -> Path:
    """Folder of a small synthetic data set in the raw format, or as flattened rows.

    Each of its test splits has two tasks. None of them is from Mind2Web, so a score on them says
    nothing about an agent. They are for tests and demos.
    """
    form = "flattened" if flattened else "raw"
    return Path(__file__).parent / "synthetic" / "mind2web" / form


def operation(op: str, value: str) -> str:
    """The text of an operation that the official scorer compares.

    >>> operation("TYPE", "New York")
    'TYPE New York'
    """
    first = value.split("\n")[0].strip() if op != "CLICK" else ""
    return f"{op} {first}".strip()


def operation_f1(predicted: str, recorded: str) -> float:
    """Word-set F1 of two operations.

    >>> operation_f1("TYPE New York", "TYPE York")
    0.8
    """
    found, gold = set(predicted.split()), set(recorded.split())
    if not found and not gold:
        return 1.0
    return 2 * len(found & gold) / (len(found) + len(gold))


def step_score(
    predicted: tuple[str, str] | None, rights: Sequence[str], recorded: str
) -> StepScore:
    """Scores of one step.

    Args:
        predicted: node and operation of the answer; ``None`` for no answer or "none of these".
        rights: nodes of the right elements that the pruning kept.
        recorded: the recorded operation.
    """
    if predicted is None or not rights:
        return 0.0, 0.0, 0.0
    node, predicted_operation = predicted
    element, f1 = float(node in rights), operation_f1(predicted_operation, recorded)
    return element, f1, float(element == 1.0 and f1 == 1.0)


class Mind2Web(RecordedBenchmark):
    """One split of the user's copy of Mind2Web.

    Tasks are read when they are needed. One instance can serve any number of environments.

    Args:
        root: a file, or a folder with the split's files anywhere below it.
        split: ``"test_task"``, ``"test_website"``, ``"test_domain"`` or ``"train"``.
        top_k: number of candidates that an agent sees of each page; ``None`` for all (hundreds).
        ranks: the ranks for the pruning: from a step, ``"<annotation_id>_<action_uid>"``,
            to ranks by node, 0 the best, such as the ``"ranks"`` in Mind2Web's
            ``scores_all_data.pkl``. ``None``: by words shared with the goal, which is much worse.
        screenshots: put a PNG into every observation (multimodal copy only).

    Raises:
        ConfigError: there is no such split.
    """

    columns = _COLUMNS

    def __init__(
        self,
        root: str | Path,
        split: Split = "test_task",
        *,
        top_k: int | None = 50,
        ranks: Mapping[str, Mapping[str, int]] | None = None,
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
            rows = read_task(self._records[task], screenshots=self._screenshots)
            return [self._step(row) for row in rows]
        except (LookupError, TypeError, ValueError, OSError, ElementTree.ParseError) as error:
            raise ConfigError(
                f"{self._root}: task {task!r}: not an action of Mind2Web: {error}"
            ) from error

    def _step(self, row: Recorded) -> Mind2WebStep:
        texts = read_texts(row)
        ranks = None
        if self._ranks is not None:
            ranks = self._ranks.get(f"{row.annotation_id}_{row.action_uid}", {})
        shown = shown_candidates(row, texts, self._top_k, ranks)
        nodes = tuple(c.node for c in shown)
        rights = tuple(c.node for c in row.pos_candidates if c.node in nodes)
        elements = tuple(to_element(k, c, texts.get(c.node, "")) for k, c in enumerate(shown))
        told = tuple(_past(text) for text in row.action_reprs[: row.target_action_index + 1])
        done, expert = row.operation, NONE_OF_THESE
        if rights:
            element = elements[nodes.index(rights[0])]
            expert = Action(
                action_type=_FROM_OP[done.op],
                target=element.label or None,
                index=element.index,
                text=None if done.op == "CLICK" else done.value or "",
            )
        page = Observation(
            goal=row.confirmed_task,
            elements=elements,
            app=row.website,
            history=told[:-1],
            actions=ACTIONS,
            png=row.screenshot,
        )
        return Mind2WebStep(
            observation=page,
            expert=expert,
            past=told[-1],
            nodes=nodes,
            rights=rights,
            operation=operation(done.op, done.value or ""),
        )


class Mind2WebStep(GoldStep, frozen=True, kw_only=True):
    """A recorded page, with the candidates that the pruning kept."""

    nodes: tuple[str, ...]
    """Node of each element."""
    rights: tuple[str, ...]
    """Nodes of the right elements that the pruning kept. May be empty."""
    operation: str
    """The recorded operation, as the official scorer compares it."""

    def values(self, action: Action | None) -> dict[str, float]:
        scores = step_score(self._predicted(action), self.rights, self.operation)
        return {**dict(zip(_NAMES, scores, strict=True)), "kept": float(bool(self.rights))}

    def remark(self, action: Action) -> str:
        kind = action.action_type
        if kind not in ACTIONS:
            return f"'{kind}' is not an operation of Mind2Web: taken as 'none of these'"
        if kind != "wait" and self._predicted(action) is None:
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
        return self.nodes[element.index], operation(_TO_OP[action.action_type], action.text or "")

    def _at(self, x: float, y: float) -> Element | None:
        """The smallest element at a point, preferably one that can be acted on."""
        hit: dict[tuple[bool, int], Element] = {}
        for element in self.observation.elements:
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            if left <= x < right and top <= y < bottom:
                passive = not (element.clickable or element.editable)
                hit.setdefault((passive, (right - left) * (bottom - top)), element)
        return hit[min(hit)] if hit else None


def _past(text: str) -> Past:
    """A recorded action as an entry of the history. Its index is not valid on later pages."""
    found = _REPR.fullmatch(text)
    if found is None or found["op"] not in _FROM_OP:
        raise ValueError(f"expected '[tag] text -> OP: value' in action_reprs, got {text!r}")
    kind = _FROM_OP[found["op"]]
    label = " ".join(found["label"].split())
    value = None if kind == "click" else found["value"] or ""
    action = Action(action_type=kind, target=label or None, index=0, text=value)
    return Past(action=action, role=role_of(found["tag"]), label=label)
