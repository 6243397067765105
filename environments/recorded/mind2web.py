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
    Candidate,
    Read,
    Row,
    candidates,
    find_tasks,
    png,
    ranks_by_words,
    read_task,
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

_NAMES = {"element accuracy": "element_acc", "operation F1": "action_f1",
          "step success": "step_acc"}  # fmt: skip
"""Names of these scores, and upstream's keys."""
_OPERATIONS: dict[str, ActionType] = {"CLICK": "click", "TYPE": "input_text", "SELECT": "select"}
_REPR = re.compile(r"(?s)\s*\[([^\]]*)\]\s*(.*?)\s*->\s*([A-Z]+)(?::\s*(.*))?")
"""Tag, label, operation and value of a recorded action."""


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


def step_score(
    predicted: tuple[str, str] | None, rights: Sequence[str], recorded: str
) -> tuple[float, float, float]:
    """Element accuracy, operation F1 and step success of one step.

    >>> step_score(("7", "TYPE New York"), ["5", "7"], "TYPE York")
    (1.0, 0.8, 0.0)

    Args:
        predicted: node and operation of the answer; ``None`` for no answer or "none of these".
        rights: nodes of the right elements that the pruning kept.
        recorded: the recorded operation.
    """
    if predicted is None or not rights:
        return 0.0, 0.0, 0.0
    node, said = predicted
    found, gold = set(said.split()), set(recorded.split())
    f1 = 2 * len(found & gold) / (len(found) + len(gold)) if found or gold else 1.0
    return float(node in rights), f1, float(node in rights and f1 == 1.0)


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

    columns = (
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
            return [self._step(row) for row in read_task(self._records[task])]
        except (LookupError, TypeError, ValueError, OSError, ElementTree.ParseError) as error:
            raise ConfigError(
                f"{self._root}: task {task!r}: not an action of Mind2Web: {error!r}"
            ) from error

    def _step(self, row: Row) -> Mind2WebStep:
        shown = self._pruned(row, candidates(row))
        nodes = tuple(c.node for c in shown)
        rights = tuple(c.node for c in row.pos_candidates if c.node in nodes)
        elements = tuple(to_element(k, c) for k, c in enumerate(shown))
        told = tuple(map(_past, row.action_reprs[: row.target_action_index + 1]))
        op, value, expert = row.operation["op"] or "", row.operation["value"] or "", NONE_OF_THESE
        if rights:
            element = elements[nodes.index(rights[0])]
            expert = Action(
                action_type=_OPERATIONS[op],
                target=element.label or None,
                index=element.index,
                text=None if op == "CLICK" else value,
            )
        page = Observation(
            goal=row.confirmed_task,
            elements=elements,
            app=row.website,
            history=told[:-1],
            actions=ACTIONS,
            png=png(row.screenshot) if self._screenshots else None,
        )
        return Mind2WebStep(
            observation=page,
            expert=expert,
            past=told[-1],
            nodes=nodes,
            rights=rights,
            operation=operation(op, value),
        )

    def _pruned(self, row: Row, found: list[Candidate]) -> list[Candidate]:
        """The best ``top_k`` candidates."""
        if self._top_k is None:
            return found
        step, ranks = f"{row.annotation_id}_{row.action_uid}", self._ranks
        if ranks is None:
            ranks = {step: ranks_by_words(row.confirmed_task, found)}
        try:
            return [c for c in found if ranks[step][c.node] < self._top_k]
        except KeyError as error:
            raise ValueError(
                f"the given ranks of the step '{step}' lack {error}; they belong to another "
                "version of the data"
            ) from error


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
        element = None if action is None else self._meant(action)
        op = next((k for k, v in _OPERATIONS.items() if action and v == action.action_type), None)
        if action is None or element is None or op is None:
            return None
        return self.nodes[element.index], operation(op, action.text or "")

    def _meant(self, action: Action) -> Element | None:
        """The element of an action. At a point, it is the smallest one, preferably one that can be
        acted on."""
        if action.x is None:
            return self.observation.element(action.index)
        hit: dict[tuple[bool, int], Element] = {}
        for element in self.observation.elements:
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            if left <= action.x < right and top <= (action.y or 0) < bottom:
                passive = not (element.clickable or element.editable)
                hit.setdefault((passive, (right - left) * (bottom - top)), element)
        return hit[min(hit)] if hit else None


def _past(text: str) -> Past:
    """A recorded action as an entry of the history. Its index is not valid on later pages."""
    found = _REPR.fullmatch(text)
    if found is None:
        raise ValueError(f"expected '[tag] text -> OP: value' in action_reprs, got {text!r}")
    tag, label, op, value = found.groups(default="")
    kind, label = _OPERATIONS.get(op, "click"), " ".join(label.split())  # HOVER, ENTER: a click
    typed = None if kind == "click" else value
    action = Action(action_type=kind, target=label or None, index=0, text=typed)
    return Past(action=action, role=role_of(tag), label=label)
