"""The tasks of AutoWebBench as recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.autowebbench import metrics
from swarm_ui.environments.autowebbench.call_syntax import strict_call, to_action, to_text
from swarm_ui.environments.autowebbench.page import Source, read_commands, read_page, read_source
from swarm_ui.environments.recorded.scores import RESAMPLES, Scores, answered_tasks
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
)
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.records import Episode

Split = Literal["en/ind", "en/ood", "zh/ind", "zh/ood"]
SPLITS: tuple[str, ...] = get_args(Split)

ACTIONS: tuple[ActionType, ...] = (
    "click", "long_press", "input_text", "select", "scroll", "navigate_back", "open_app",
    "answer", "status",
)  # fmt: skip
"""The actions that an observation lists. ``call_syntax.to_text`` maps them to functions."""


class _Record(msgspec.Struct):
    source: str
    target: str | list[str]

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


class AutoWebBench(RecordedBenchmark["AutoWebBenchStep"]):
    """One split of the user's copy of AutoWebBench.

    The data has no task ids. Steps with the same ``#Task:`` form one task, which is named by split
    and number, such as ``"en/ind/012"``. The file shuffles the steps of a task; here they are
    sorted by their number of previous commands. The file (2 MB) is read when the first task is
    needed. One instance can serve any number of environments.

    Args:
        root: a folder with ``en/ind/test.json`` … anywhere below it, or one such file.
        split: ``"en/ind"``, ``"en/ood"``, ``"zh/ind"`` or ``"zh/ood"``.

    Raises:
        ConfigError: the split does not exist, or there are no data.
    """

    def __init__(self, root: str | Path, split: Split = "en/ind") -> None:
        if split not in SPLITS:
            raise ConfigError(f"AutoWebBench has the splits {', '.join(SPLITS)}; got {split!r}")
        self._split, self.name = split, f"autowebbench {split} (offline)"
        self._path = _find(Path(root).expanduser(), split)

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._tasks)

    def load(self, task: str, seed: int = 0) -> Sequence[AutoWebBenchStep]:
        records = self._tasks.get(task)
        if records is None:
            raise ConfigError(f"{self._path}: no task {task!r} among {len(self._tasks)}")
        steps = [_step(source, labels) for source, labels in records]
        return sorted(steps, key=lambda step: len(step.observation.history))

    def score(
        self,
        episodes: Sequence[Episode],
        *,
        words: Callable[[str], Iterable[str]] = metrics.cut_words,
        resamples: int = RESAMPLES,
    ) -> Scores:
        """Official and strict metrics (see :mod:`swarm_ui.environments.autowebbench.metrics`).

        Args:
            episodes: episodes of these tasks. An episode that ended with a fault is counted and
                left out. A step that was not reached counts as wrong.
            words: splits a text into words for ROUGE; ``jieba.cut`` gives the official numbers.
            resamples: number of draws of the bootstrap over tasks for the 95 % intervals.

        Raises:
            ConfigError: an episode shows pages that are not in these data.
        """
        played, counts = answered_tasks(self, episodes)
        del counts["steps"]  # counted with those that the official scorer drops
        predictions = [
            metrics.Prediction(
                task=task, predict=step.call(action), labels=step.labels, attempt=attempt
            )
            for attempt, (task, answers) in enumerate(played)
            for step, action in answers
        ]
        return metrics.score_predictions(
            predictions, title=self.name, words=words, resamples=resamples, counts=counts
        )

    @cached_property
    def _tasks(self) -> dict[str, list[tuple[Source, tuple[str, ...]]]]:
        try:
            records = msgspec.json.decode(self._path.read_bytes(), type=list[_Record])
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"{self._path}: not AutoWebBench's JSON, a list of objects with 'source' and "
                f"'target': {error}"
            ) from error
        grouped: dict[str, list[tuple[Source, tuple[str, ...]]]] = {}
        for number, record in enumerate(records):
            where, labels = f"{self._path}, record {number}", record.labels
            source = read_source(record.source, where)
            if not labels or strict_call(labels[0]).function is None:
                raise ConfigError(
                    f"{where}: 'target' must be a call such as \"click('SD')\", got {labels!r}"
                )
            grouped.setdefault(source.task, []).append((source, labels))
        digits = max(3, len(str(len(grouped))))
        numbered = enumerate(grouped.values())
        return {f"{self._split}/{k:0{digits}d}": records for k, records in numbered}


class AutoWebBenchStep(GoldStep, frozen=True, kw_only=True):
    """A recorded page."""

    labels: tuple[str, ...]
    """The recorded call. With several calls, any of them is right."""
    ids: tuple[str, ...]
    """The id of each element; empty for plain text."""

    def call(self, action: Action | None) -> str:
        """The call of an answer. Empty if there is no call for it."""
        if action is None:
            return ""
        element = self.observation.element(action.index)
        return to_text(action, self.ids[element.index] if element else "")

    def right(self, action: Action) -> bool:
        return metrics.strict_step(self.call(action), self.labels)["step success"] == 1.0

    def remark(self, action: Action) -> str:
        if not self.call(action):
            return f"'{action.action_type}' is not a call of AutoWebBench: taken as no answer"
        if action.x is not None:
            return "pages have no coordinates: give 'index'"
        if action.index is not None and not self.ids[action.index]:
            return f"element {action.index} is only to be read: it has no id"
        return ""


def _step(source: Source, labels: tuple[str, ...]) -> AutoWebBenchStep:
    elements, ids = read_page(source.page)
    gold = strict_call(labels[0])
    element = elements[ids.index(gold.element)] if gold.element in ids else None
    role, label = (element.role, element.label) if element else ("", "")
    action = to_action(gold, element.index if element else None, label)
    told = action or Action(action_type="wait", text=labels[0])
    return AutoWebBenchStep(
        observation=Observation(
            goal=source.task,
            elements=elements,
            app=f"{source.tab}, pages {source.view}",
            history=read_commands(source.commands),
            actions=ACTIONS,
        ),
        expert=action or NONE_OF_THESE,
        past=Past(action=told, role=role, label=label),
        labels=labels,
        ids=ids,
    )


def _find(root: Path, split: str) -> Path:
    if root.is_file():
        return root
    found = sorted(root.rglob(f"{split}/test.json")) if root.is_dir() else []
    if len(found) != 1:
        raise ConfigError(
            f"{root}: expected one {split}/test.json of AutoWebBench below it, got {len(found)}; "
            "see swarm_ui.environments.autowebbench for where to get it"
        )
    return found[0]
