"""AutoWebBench's tasks as recordings."""

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
from swarm_ui.environments.recorded.benchmark_scores import RESAMPLES, Scores
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE, TeacherForced
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.rollout.episodes import Job
from swarm_ui.trace.records import Episode

Split = Literal["en/ind", "en/ood", "zh/ind", "zh/ood"]
SPLITS: tuple[str, ...] = get_args(Split)

ACTIONS: tuple[ActionType, ...] = (
    "click", "long_press", "input_text", "select", "scroll", "navigate_back", "open_app",
    "answer", "status",
)  # fmt: skip
"""What an agent is told it can do; for the functions behind them see
:func:`swarm_ui.environments.autowebbench.call_syntax.to_text`."""


class _Record(msgspec.Struct):
    source: str
    target: str | list[str]


class AutoWebBench:
    """One split of the user's copy of AutoWebBench.

    The data has no task ids: steps with the same ``#Task:`` are one task, named by split and
    number, such as ``"en/ind/012"``. The file shuffles the steps of a task; here they come in
    the order of their previous commands. It (2 MB) is read when the first task is asked for. One
    object serves any number of environments.

    Args:
        root: the folder with ``en/ind/test.json`` … somewhere below it, or one such file.
        split: ``"en/ind"``, ``"en/ood"``, ``"zh/ind"`` or ``"zh/ood"``.
        words: most words shown of the text of an element that one can act on.

    Raises:
        ConfigError: no such split, or no data there.
    """

    def __init__(self, root: str | Path, split: Split = "en/ind", *, words: int = 30) -> None:
        if split not in SPLITS:
            raise ConfigError(f"AutoWebBench has the splits {', '.join(SPLITS)}; got {split!r}")
        if words < 1:
            raise ConfigError(f"words must be at least 1, got {words}")
        self.split = split
        self.path = _find(Path(root).expanduser(), split)
        self._words = words

    @property
    def name(self) -> str:
        return f"autowebbench {self.split} (offline)"

    @property
    def tasks(self) -> Sequence[str]:
        """Names of the tasks, in the order of the file."""
        return tuple(self._tasks)

    def load(self, task: str) -> Sequence[AutoWebBenchStep]:
        """The steps of a task; their pages are read when they are looked at.

        Raises:
            ConfigError: no such task, or the file is wrong; says which record, and why.
        """
        records = self._tasks.get(task)
        if records is None:
            raise ConfigError(f"{self.path}: no task {task!r} among {len(self._tasks)}")
        steps = [AutoWebBenchStep(*record, self._words) for record in records]
        return sorted(steps, key=lambda step: len(step.history))

    def environment(self) -> TeacherForced:
        """An environment for one episode at a time; make as many as you like."""
        return TeacherForced(self)

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Tasks (all by default) as :func:`~swarm_ui.rollout_many` takes them."""
        return [(task, 0) for task in (self.tasks if tasks is None else tasks)]

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
            episodes: those that a fault ended are left out and counted; steps that were never
                reached count as wrong.
            words: cuts a text into words for ROUGE; give ``jieba.cut`` for the official numbers.
            seed, resamples: of the bootstrap over tasks behind the 95 % intervals.

        Raises:
            ConfigError: an episode shows other pages than this data gives.
        """
        return metrics.score(self, episodes, words=words, seed=seed, resamples=resamples)

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
    """A page of a recording; see
    :class:`~swarm_ui.environments.recorded.teacher_forced.GoldStep`."""

    def __init__(self, source: Source, labels: tuple[str, ...], where: str, words: int) -> None:
        self.labels = labels
        """The recorded call; more than one if any of them is right."""
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
        """An answer as the call that is scored; empty: no call."""
        if action is None:
            return ""
        ids = self._page[1]
        pointed = action.index is not None and action.index < len(ids)
        return to_text(action, ids[action.index] if pointed and action.index is not None else "")

    def right(self, action: Action) -> bool:
        return metrics.strict_right(self.call(action), self.labels)

    def expert(self) -> Action:
        index = self._index(self._gold)
        label = "" if index is None else self._page[0][index].label
        return to_action(self._gold, index, label) or NONE_OF_THESE

    def remark(self, action: Action) -> str:
        if not self.call(action):
            return f"'{action.action_type}' is no call of AutoWebBench: taken as no answer"
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
