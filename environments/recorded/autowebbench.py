"""AutoWebBench offline: next-action prediction on recorded English and Chinese web pages.

Get the data yourself; none of it is in this package: ``autowebbench/`` of
https://github.com/THUDM/AutoWebGLM (the repository is Apache-2.0, its data "for research purpose
only"). Do not redistribute the test files, nor traces of episodes on them. It is used like
:mod:`swarm_ui.environments.recorded.mind2web`.

The ten functions of the benchmark are mapped to actions:

| function | action |
| --- | --- |
| click, type_string, select | ``click``, ``input_text``, ``select`` |
| hover | ``long_press`` |
| scroll_page, go('backward') | ``scroll``, ``navigate_back`` |
| jump_to | ``open_app`` with the address as ``app_name`` |
| finish | ``status`` "complete", or ``answer`` with the text |
| user_input | ``status`` "infeasible", because only the user can continue |

go('forward') and switch_tab have no action and always count as wrong (4 of the 1451 recorded
steps). For the formulas see :mod:`swarm_ui.environments.recorded.autowebbench_scores`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.recorded.autowebbench_scores import (
    COLUMNS,
    DROPPED,
    FUNCTIONS,
    Call,
    Words,
    cut_words,
    step_values,
    strict_call,
)
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
)
from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past

Split = Literal["en/ind", "en/ood", "zh/ind", "zh/ood"]
SPLITS: tuple[str, ...] = get_args(Split)
ACTIONS: tuple[ActionType, ...] = (
    "click", "long_press", "input_text", "select", "scroll", "navigate_back", "open_app",
    "answer", "status",
)  # fmt: skip
"""The actions that an observation lists."""
_POINTED: dict[str, ActionType] = {
    "click": "click", "hover": "long_press", "type_string": "input_text", "select": "select",
}  # fmt: skip

_TOKEN = re.compile(r"<(?:(?P<tag>[A-Za-z_][\w:-]*)(?:\[(?P<id>\w+)\])?\|)?|>|[^<>]+|<")
_SECTIONS = re.compile(
    r"(?s)(.*?)\n\nYou are a helpful assistant.*\n#Previous commands:(.*)\n\n#Window tabs:(.*)"
    r"\n\n#Current viewport \(pages\):(.*?)\n\n#Task:(.*?)\n\nYou should output"
)
"""Page, previous commands, tabs, place on the page, and task of a prompt."""
_CURRENT = "<-- current tab"
_COMMAND = re.compile(rf"^(?=(?:{'|'.join(FUNCTIONS)})\()", re.MULTILINE)
_WORDS = 30
"""Maximum number of words of an actionable element's text."""


def synthetic() -> Path:
    """Folder of a small synthetic data set with four splits of two tasks each.

    None of the tasks is from the benchmark, so a score on them has no meaning for an agent. They
    are for tests and demos.
    """
    return Path(__file__).parent / "synthetic" / "autowebbench"


class _Record(msgspec.Struct):
    """A step in the file."""

    source: str
    target: str | list[str]


class AutoWebBench(RecordedBenchmark):
    """One split of the user's copy of AutoWebBench.

    The data has no task ids. Steps with the same ``#Task:`` form one task, which is named by split
    and number, such as ``"en/ind/012"``; they are sorted by their number of previous commands. The
    file is read when it is needed. One instance can serve any number of environments.

    Args:
        root: a folder with ``en/ind/test.json`` … anywhere below it, or one such file.
        split: ``"en/ind"``, ``"en/ood"``, ``"zh/ind"`` or ``"zh/ood"``.
        words: splits a text into words for ROUGE; ``jieba.cut`` gives the official numbers.

    Raises:
        ConfigError: the split does not exist, or there are no data.
    """

    columns, counted = COLUMNS, (DROPPED,)

    def __init__(
        self, root: str | Path, split: Split = "en/ind", *, words: Words = cut_words
    ) -> None:
        if split not in SPLITS:
            raise ConfigError(f"AutoWebBench has the splits {', '.join(SPLITS)}; got {split!r}")
        self._split, self.name = split, f"autowebbench {split} (offline)"
        root = Path(root).expanduser()
        found = [root] if root.is_file() else sorted(root.rglob(f"{split}/test.json"))
        if len(found) != 1:
            raise ConfigError(
                f"{root}: expected one {split}/test.json of AutoWebBench below it, got "
                f"{len(found)}; see swarm_ui.environments.recorded.autowebbench for where to get it"
            )
        self._path, self._words = found[0], words

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(self._tasks)

    def load(self, task: str, seed: int = 0) -> Sequence[AutoWebBenchStep]:
        if task not in self._tasks:
            raise ConfigError(f"{self._path}: no task {task!r} among {len(self._tasks)}")
        return self._tasks[task]

    @cached_property
    def _tasks(self) -> dict[str, list[AutoWebBenchStep]]:
        tasks: dict[str, list[AutoWebBenchStep]] = {}
        try:
            for record in msgspec.json.decode(self._path.read_bytes(), type=list[_Record]):
                step = _step(record, self._words)
                tasks.setdefault(step.observation.goal, []).append(step)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self._path}: not AutoWebBench's JSON: {error}") from error
        digits = max(3, len(str(len(tasks))))
        return {
            f"{self._split}/{k:0{digits}d}": sorted(steps, key=lambda s: len(s.observation.history))
            for k, steps in enumerate(tasks.values())
        }


class AutoWebBenchStep(GoldStep, frozen=True, kw_only=True):
    """A recorded page."""

    labels: tuple[str, ...]
    """The recorded call. With several calls, any of them is right."""
    ids: tuple[str, ...]
    """The id of each element; empty for plain text."""
    words: Words

    def call(self, action: Action | None) -> str:
        """The call of an answer. Empty if there is no call for it."""
        element = None if action is None else self.observation.element(action.index)
        return _call_of(action, self.ids[element.index] if element else "") if action else ""

    def values(self, action: Action | None) -> dict[str, float]:
        return step_values(self.call(action), self.labels, self.words)

    def remark(self, action: Action) -> str:
        if not self.call(action):
            return f"'{action.action_type}' is not a call of AutoWebBench: taken as no answer"
        if action.x is not None:
            return "pages have no coordinates: give 'index'"
        if action.index is not None and not self.ids[action.index]:
            return f"element {action.index} is only to be read: it has no id"
        return ""


def _step(record: _Record, words: Words) -> AutoWebBenchStep:
    found = _SECTIONS.match(record.source)
    labels = (record.target,) if isinstance(record.target, str) else tuple(record.target)
    if found is None or not labels or strict_call(labels[0]).function is None:
        raise ValueError(
            "expected as 'source' a prompt with a page and '#Task:', and as 'target' a call such "
            f"as \"click('SD')\", got {record.source[:80]!r} … and {labels!r}"
        )
    page, commands, tabs, view, task = map(str.strip, found.groups())
    elements, ids = read_page(page)
    gold = strict_call(labels[0])
    element = elements[ids.index(gold.element)] if gold.element in ids else None
    action = _action_of(gold, element, element.index if element else None)
    current = next((line for line in tabs.splitlines() if _CURRENT in line), tabs)
    tab = re.sub(r"^\d+\.\s*", "", current.partition(_CURRENT)[0].strip())
    return AutoWebBenchStep(
        observation=Observation(
            goal=task,
            elements=elements,
            app=f"{tab}, pages {view}",
            history=read_commands(commands),
            actions=ACTIONS,
        ),
        expert=action or NONE_OF_THESE,
        past=_past(action, labels[0], element),
        labels=labels,
        ids=ids,
        words=words,
    )


# -- pages ----------------------------------------------------------------------------------------


def read_page(page: str, words: int = _WORDS) -> tuple[tuple[Element, ...], tuple[str, ...]]:
    """The elements of a page in its order, and the id of each. An id is empty for plain text.

    A page looks like ``<a[SD]| <span| Google> > <p| Hello>``: a tag, the id of an actionable
    element in brackets, a bar, then texts and further nodes; ``< … >`` is a group. Texts are not
    escaped, so a ``>`` in a text closes its node too early. That can cut a label, but loses no id.

    A node with an id has all text inside it, except that of inner nodes with an id. Text outside
    such nodes becomes elements of its own, because it can contain the answer to a question.
    """
    found: list[tuple[str, str, list[str]]] = [("", "", [])]  # tag, id, pieces of the text
    holders = found[:]  # of each open node, the one that takes its text: the nearest with an id
    for token in _TOKEN.finditer(page):
        if token[0] == ">":
            del holders[max(1, len(holders) - 1) :]
        elif token[0] == "<":
            holders.append(holders[-1])
        elif token["tag"] is None:
            holders[-1][2].append(token[0])
        elif token["id"] or not holders[-1][1]:
            holders.append((token["tag"].lower(), token["id"] or "", []))
            found.append(holders[-1])
        else:
            holders.append(holders[-1])
    texts = [(tag, id, " ".join(" ".join(pieces).split())) for tag, id, pieces in found]
    kept = [(tag, id, text) for tag, id, text in texts if id or text]
    elements = tuple(
        Element(
            index=index,
            role=role_of(tag),
            text=first_words(text, words) if id else text,  # what is only to be read: in full
            clickable=bool(id),
            editable=bool(id) and role_of(tag) in ("field", "area") and tag != "select",
        )
        for index, (tag, id, text) in enumerate(kept)
    )
    return elements, tuple(id for _, id, _ in kept)


def read_commands(commands: str) -> tuple[Past, ...]:
    """The recorded commands before this page, oldest first."""
    found = []
    for command in _COMMAND.split("" if commands == "None" else commands):
        if command.strip():
            call, _, html = command.strip().partition(" #HTML Segment: ")
            elements, _ = read_page(html, words=12)
            element = elements[0] if elements else None
            # The index refers to no later page.
            found.append(_past(_action_of(strict_call(call), element, 0), call, element))
    return tuple(found)


# -- calls and actions ----------------------------------------------------------------------------


def _past(action: Action | None, call: str, element: Element | None) -> Past:
    """A recorded call in the history; one without an action is quoted."""
    action = action or Action(action_type="wait", text=call)
    role, label = (element.role, element.label) if element else ("", "")
    return Past(action=action, role=role, label=label)


def _call_of(action: Action, element: str) -> str:
    """The call for an action on the element with this id. Empty if there is no call for it."""
    kind, text, way = action.action_type, action.text or "", action.direction
    if kind == "status" and action.goal_status == "infeasible":
        return f"user_input({text!r})"
    return {
        "click": f"click({element!r})",
        "long_press": f"hover({element!r})",
        "input_text": f"type_string({element!r}, {text!r}, False)",
        "select": f"select({element!r}, {text!r})",
        "scroll": f"scroll_page({way!r})" if way in ("up", "down") else "",
        "navigate_back": "go('backward')",
        "open_app": f"jump_to({action.app_name!r}, False)",
        "answer": f"finish({text!r})",
        "status": "finish()",
    }.get(kind, "")


def _action_of(call: Call, element: Element | None, index: int | None) -> Action | None:
    """The action of a recorded call, whose element has this index; ``None`` if there is none."""
    text = "" if call.parameter is None else str(call.parameter)
    match call.function, text:
        case ("click" | "hover" | "type_string" | "select") as function, _:
            if index is None or call.element is None:
                return None
            typed = text if function in ("type_string", "select") else None
            target = element.label or None if element else None
            kind = _POINTED[function]
            return Action(action_type=kind, target=target, index=index, text=typed)
        case "scroll_page", ("up" | "down") as way:
            return Action(action_type="scroll", direction="up" if way == "up" else "down")
        case "go", "backward":
            return Action(action_type="navigate_back")
        case "jump_to", address if address:
            return Action(action_type="open_app", app_name=address)
        case "finish", "":
            return Action(action_type="status", goal_status="complete")
        case "finish", _:
            return Action(action_type="answer", text=text)
        case "user_input", _:
            return Action(action_type="status", goal_status="infeasible", text=text or None)
    return None
