"""The tasks of AutoWebBench as recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.autowebbench import metrics
from swarm_ui.environments.autowebbench.call_syntax import Call, strict_call, to_action, to_text
from swarm_ui.environments.autowebbench.page import Source, read_commands, read_page, read_source
from swarm_ui.environments.recorded.scores import RESAMPLES, Scores, answered_tasks
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    RecordedBenchmark,
    check_split,
)
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past
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


class AutoWebBench(RecordedBenchmark["AutoWebBenchStep"]):
    """One split of the user's copy of AutoWebBench.

    The data has no task ids. Steps with the same ``#Task:`` form one task, which is named by split
    and number, such as ``"en/ind/012"``. The file shuffles the steps of a task; here they are
    sorted by their number of previous commands. The file (2 MB) is read when the first task is
    needed. One instance can serve any number of environments.

    Args:
        root: a folder with ``en/ind/test.json`` … anywhere below it, or one such file.
        split: ``"en/ind"``, ``"en/ood"``, ``"zh/ind"`` or ``"zh/ood"``.
        words: maximum number of words of an actionable element's text.

    Raises:
        ConfigError: the split does not exist, or there are no data.
    """

    def __init__(self, root: str | Path, split: Split = "en/ind", *, words: int = 30) -> None:
        check_split("AutoWebBench", split, SPLITS)
        if words < 1:
            raise ConfigError(f"AutoWebBench: words must be at least 1, got {words}")
        self.split, self.name = split, f"autowebbench {split} (offline)"
        self.path = _find(Path(root).expanduser(), split)
        self._words = words

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._tasks)

    def load(self, task: str, seed: int = 0) -> Sequence[AutoWebBenchStep]:
        records = self._tasks.get(task)
        if records is None:
            raise ConfigError(f"{self.path}: no task {task!r} among {len(self._tasks)}")
        steps = [AutoWebBenchStep(*record, self._words) for record in records]
        return sorted(steps, key=lambda step: len(step.history))

    def score(
        self,
        episodes: Sequence[Episode],
        *,
        words: Callable[[str], Iterable[str]] | None = None,
        seed: int = 0,
        resamples: int = RESAMPLES,
    ) -> Scores:
        """Official and strict metrics (see :mod:`swarm_ui.environments.autowebbench.metrics`).

        Args:
            episodes: episodes of these tasks. An episode that ended with a fault is counted and
                left out. A step that was not reached counts as wrong.
            words: splits a text into words for ROUGE; ``jieba.cut`` gives the official numbers.
            seed, resamples: settings of the bootstrap over tasks for the 95 % intervals.

        Raises:
            ConfigError: an episode shows pages that are not in these data.
        """
        played, counts = answered_tasks(self, episodes)
        predictions = [
            metrics.Prediction(
                task=one.task, predict=step.call(action), labels=step.labels, attempt=one.attempt
            )
            for one in played
            for step, action in one.steps
        ]
        return metrics.score_predictions(
            predictions,
            title=self.name,
            words=words,
            seed=seed,
            resamples=resamples,
            counts={k: n for k, n in counts.items() if k != "steps"},
        )

    @cached_property
    def _tasks(self) -> dict[str, list[tuple[Source, tuple[str, ...], str]]]:
        try:
            records = msgspec.json.decode(self.path.read_bytes(), type=list[_Record])
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error}") from error
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"{self.path}: not AutoWebBench's JSON, a list of objects with 'source' and "
                f"'target': {error}"
            ) from error
        grouped: dict[str, list[tuple[Source, tuple[str, ...], str]]] = {}
        for number, record in enumerate(records):
            where = f"{self.path}, record {number}"
            source = read_source(record.source, where)
            labels = (record.target,) if isinstance(record.target, str) else tuple(record.target)
            if not labels or strict_call(labels[0]).function is None:
                raise ConfigError(
                    f"{where}: 'target' must be a call such as \"click('SD')\", got {labels!r}"
                )
            grouped.setdefault(source.task, []).append((source, labels, where))
        digits = max(3, len(str(len(grouped))))
        numbered = enumerate(grouped.values())
        return {f"{self.split}/{k:0{digits}d}": records for k, records in numbered}


class AutoWebBenchStep:
    """A recorded page. It implements
    :class:`~swarm_ui.environments.recorded.teacher_forced.GoldStep`."""

    def __init__(self, source: Source, labels: tuple[str, ...], where: str, words: int) -> None:
        self.labels = labels
        """The recorded call. With several calls, any of them is right."""
        self._source = source
        self._where = where
        self._words = words

    @cached_property
    def _page(self) -> tuple[tuple[Element, ...], tuple[str, ...]]:
        return read_page(self._source.page, words=self._words)

    @cached_property
    def history(self) -> tuple[Past, ...]:
        """The commands recorded before this page."""
        return read_commands(self._source.commands)

    @cached_property
    def observation(self) -> Observation:
        source = self._source
        return Observation(
            goal=source.task,
            elements=self._page[0],
            app=f"{source.tab}, pages {source.view}",
            history=self.history,
            actions=ACTIONS,
        )

    @property
    def past(self) -> Past:
        elements, _ = self._page
        index = self._index(self._gold)
        element = elements[index] if index is not None else None
        role, label = (element.role, element.label) if element else ("", "")
        action = to_action(self._gold, index, label)
        told = action or Action(action_type="wait", text=self.labels[0])
        return Past(action=told, role=role, label=label)

    def call(self, action: Action | None) -> str:
        """The call of an answer. Empty if there is no call for it."""
        if action is None:
            return ""
        ids = self._page[1]
        pointed = action.index is not None and action.index < len(ids)
        return to_text(action, ids[action.index] if pointed and action.index is not None else "")

    def right(self, action: Action) -> bool:
        return metrics.strict_step(self.call(action), self.labels)["step success"] == 1.0

    def expert(self) -> Action:
        index = self._index(self._gold)
        label = "" if index is None else self._page[0][index].label
        return to_action(self._gold, index, label) or NONE_OF_THESE

    def remark(self, action: Action) -> str:
        if not self.call(action):
            return f"'{action.action_type}' is not a call of AutoWebBench: taken as no answer"
        if action.x is not None:
            return "pages have no coordinates: give 'index'"
        if action.index is not None and not self._page[1][action.index]:
            return f"element {action.index} is only to be read: it has no id"
        return ""

    @property
    def _gold(self) -> Call:
        return strict_call(self.labels[0])

    def _index(self, call: Call) -> int | None:
        ids = self._page[1]
        return ids.index(call.element) if call.element in ids else None


def _find(root: Path, split: str) -> Path:
    if root.is_file():
        return root
    found = sorted(root.rglob(f"{split}/test.json")) if root.is_dir() else []
    if len(found) != 1:
        what = "no" if not found else "more than one"
        raise ConfigError(
            f"{root}: {what} AutoWebBench data of '{split}' found. Expected one "
            f"{split}/test.json below it. Where to get it: see swarm_ui.environments.autowebbench"
        )
    return found[0]
