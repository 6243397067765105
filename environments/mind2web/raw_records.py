"""Mind2Web's records in the files: raw tasks, and flattened rows of single actions.

Unused fields are skipped. One of them is ``raw_html``, by far the largest field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError

Picture = Callable[[object, str], bytes]

OPERATIONS = ("CLICK", "TYPE", "SELECT")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An element of a page that may be the right one."""

    node: str
    """``backend_node_id``, which the official scorer compares."""
    tag: str
    attributes: dict[str, str]
    rank: int | None = None
    score: float | None = None


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded action and the page before it."""

    uid: str
    index: int
    """Index in the task's ``action_reprs``."""
    cleaned_html: str
    op: str
    value: str
    positives: tuple[Candidate, ...]
    """The right elements of the page; may be empty."""
    negatives: tuple[Candidate, ...]
    png: bytes | None = None
    where: str
    """File and number of the record, for error messages."""


class RecordedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its recorded actions."""

    annotation_id: str
    goal: str
    website: str
    reprs: tuple[str, ...]
    """All recorded actions, such as ``"[button]  Search -> CLICK"``."""
    actions: tuple[Recorded, ...]


class _Operation(msgspec.Struct):
    op: str
    value: str | None = None


class _Candidate(msgspec.Struct):
    tag: str
    backend_node_id: str | int
    attributes: str | dict[str, Any] = "{}"
    rank: int | None = None
    score: float | None = None


class _Action(msgspec.Struct):
    action_uid: str
    cleaned_html: str
    operation: _Operation
    pos_candidates: list[_Candidate]
    neg_candidates: list[_Candidate]


class _Task(msgspec.Struct):
    annotation_id: str
    confirmed_task: str
    action_reprs: list[str]
    actions: list[_Action]
    website: str = ""


class _Row(msgspec.Struct):
    """A flattened row with one action. Some copies have JSON strings in place of objects."""

    annotation_id: str
    confirmed_task: str
    action_uid: str
    cleaned_html: str
    operation: str | _Operation
    pos_candidates: str | list[str | _Candidate]
    neg_candidates: str | list[str | _Candidate]
    action_reprs: list[str]
    target_action_index: str | int
    website: str = ""
    screenshot: Any = None


ROW_FIELDS = tuple(name for name in _Row.__struct_fields__ if name != "screenshot")

_TASK = msgspec.json.Decoder(_Task)
_OPERATION = msgspec.json.Decoder(_Operation)
_CANDIDATE = msgspec.json.Decoder(_Candidate)
_CANDIDATES = msgspec.json.Decoder(list[str | _Candidate])
_ATTRIBUTES = msgspec.json.Decoder(dict[str, Any])


def read_task(raw: msgspec.Raw, where: str) -> RecordedTask:
    """A task of the raw format. Raises ``ConfigError``, with the field, for a wrong record."""
    try:
        task = _TASK.decode(raw)
        actions = tuple(
            _recorded(action, k, f"{where}, action {k}") for k, action in enumerate(task.actions)
        )
    except (msgspec.MsgspecError, ValueError) as error:
        raise wrong_record(where, error, "raw Mind2Web task") from error
    if len(task.action_reprs) != len(actions):
        raise ConfigError(
            f"{where}: 'action_reprs' has {len(task.action_reprs)} entries for {len(actions)} "
            "actions; they must match one by one"
        )
    return RecordedTask(
        annotation_id=task.annotation_id,
        goal=task.confirmed_task,
        website=task.website,
        reprs=tuple(task.action_reprs),
        actions=actions,
    )


def read_rows(rows: Sequence[tuple[object, str]], picture: Picture | None) -> RecordedTask:
    """A task of the flattened format.

    Args:
        rows: JSON texts or objects, each with its file and record for errors.
        picture: reads the ``screenshot`` of a row as PNG; ``None`` for no pictures.

    Raises:
        ConfigError: a row is wrong. The message names the row and the field.
    """
    read = sorted(
        (_row(row, where, picture) for row, where in rows), key=lambda pair: pair[1].index
    )
    for (_, before), (_, after) in pairwise(read):
        if before.index == after.index:
            raise ConfigError(
                f"{after.where}: 'target_action_index' {after.index} occurs twice, "
                f"also in {before.where}"
            )
    first = read[0][0]
    return RecordedTask(
        annotation_id=first.annotation_id,
        goal=first.confirmed_task,
        website=first.website,
        reprs=tuple(first.action_reprs),
        actions=tuple(action for _, action in read),
    )


def wrong_record(where: str, error: Exception, kind: str) -> ConfigError:
    return ConfigError(f"{where}: not a {kind}: {error}")


def _row(row: object, where: str, picture: Picture | None) -> tuple[_Row, Recorded]:
    try:
        if isinstance(row, msgspec.Raw):
            fields = msgspec.json.decode(row, type=_Row)
        else:
            fields = msgspec.convert(row, _Row)
        operation = fields.operation
        action = _Action(
            action_uid=fields.action_uid,
            cleaned_html=fields.cleaned_html,
            operation=_OPERATION.decode(operation) if isinstance(operation, str) else operation,
            pos_candidates=_unfold(fields.pos_candidates),
            neg_candidates=_unfold(fields.neg_candidates),
        )
        recorded = _recorded(action, int(fields.target_action_index), where)
    except (msgspec.MsgspecError, ValueError) as error:
        raise wrong_record(where, error, "flattened Mind2Web row") from error
    if not 0 <= recorded.index < len(fields.action_reprs):
        raise ConfigError(
            f"{where}: 'target_action_index' is {recorded.index}, but 'action_reprs' has "
            f"{len(fields.action_reprs)} entries"
        )
    if picture is not None:
        png = picture(fields.screenshot, where)
        recorded = msgspec.structs.replace(recorded, png=png)
    return fields, recorded


def _unfold(candidates: str | list[str | _Candidate]) -> list[_Candidate]:
    listed = _CANDIDATES.decode(candidates) if isinstance(candidates, str) else candidates
    return [_CANDIDATE.decode(c) if isinstance(c, str) else c for c in listed]


def _recorded(action: _Action, index: int, where: str) -> Recorded:
    if action.operation.op not in OPERATIONS:
        raise ValueError(
            f"action {action.action_uid}: 'operation.op' must be one of {', '.join(OPERATIONS)}, "
            f"got {action.operation.op!r}"
        )
    return Recorded(
        uid=action.action_uid,
        index=index,
        cleaned_html=action.cleaned_html,
        op=action.operation.op,
        value=action.operation.value or "",
        positives=tuple(map(_candidate, action.pos_candidates)),
        negatives=tuple(map(_candidate, action.neg_candidates)),
        where=where,
    )


def _candidate(found: _Candidate) -> Candidate:
    listed = found.attributes
    attributes = _ATTRIBUTES.decode(listed) if isinstance(listed, str) else listed
    return Candidate(
        node=str(found.backend_node_id),
        tag=found.tag,
        attributes={name: str(value) for name, value in attributes.items() if value is not None},
        rank=found.rank,
        score=found.score,
    )
