"""Traces on disk: JSON lines, one episode or one decision a line, with a version.

The format, for readers in other languages. A file is UTF-8; every line ends with a line feed (no
other character ends one) and is one object, ``{"version": 1, "episode": {...}}`` or
``{"version": 1, "trace": {...}}``. A field at its default is left out (``-`` below: it is always
there); an unknown field is to be ignored. The version changes when a field goes or changes its
meaning, not when one is added. Where a failure stands, old files may have a text. Numbers are
finite. Equal records give equal bytes.
:func:`trace_schema` gives all this as a JSON Schema.

```text
field              type            default  meaning
Episode                                     a task attempted once
version            int             1        as of the line
environment        str             -
checker            int             1        version of the environment's success check
task               str             -
seed               int             -        of the environment
policy             str             ""       what acted, for tables
steps              [StepRecord]    []
success            bool?           null     null: masked by an infrastructure fault
fault              Failure?        null     what broke around the agents
seconds            float           0        wall time, s
StepRecord                                  one step of an episode
trace              Trace           -        the decision
executed           Action?         null     the action that was executed
reward             float           0
terminated         bool            false    the task is over
truncated          bool            false    the step limit was reached
note               str             ""       note of the environment
credit             [[float?]]?     null     credit of messages [round][agent]; null: unscored
credit_source      str             ""       who gave it; "": not known
rationale          [str]           []       why, in the words of who gave it: a text for each round
Trace                                       one decision
version            int             1        as of the line
run                str             -        name of the run
seed               int             -        of the run
observation        Observation     -        the screen, the goal, the past actions
agents             [str]           -        names of the agents: columns of matrices
rounds             int             -
edges              [[str, str]]    []       sender and listener
edge_logprob       float?          null     log-probability of the edges, nats; null: fixed
messages           [Message]       []       each stored once, referred to by id
calls              [Call]          []       as many as messages, in the same order
skipped            [str]           []       ids of messages that were never asked for
ballot             {str: float}    {}       weight of each proposal, by the action's JSON
action             Action?         null     the decision; null: there was no valid proposal
Message                                     the message of one node in one round
id                 str             -        "sender:round"; nested: "team:1/agent_0:0"
sender             str             -        name of the node
round              int             -        from 0
content            str             -        the whole reply
action             Action?         null     the proposal, in the screen's indices; null: none
adapter            str?            null     adapter and version, "actor_2@7"; null: base model
logprob            float?          null     log-probability of the reply, nats; null: unknown
usage              Usage           0, 0
error              str?            null     why there is no valid proposal
Call                                        how a message came about
message            str             -        its id
node               str             -        name of the node
round              int             -        from 0
heard              [str]           []       ids of the messages it received, in order
order              [int]?          null     screen index of each element as shown; null: as is
prompt             str             ""       exact prompt as the model read it; "": no model
reply              str             ""       what the model replied
model              str             ""       model that answered
adapter            str?            null     as of the message
temperature        float           0        0: greedy
seed               int             0        of the sampling of this call
logprob            float?          null     as of the message
usage              Usage           0, 0
ballot             {str: float}?   null     weights, if the node voted
started            float           0        s since the run began
ended              float           0        s since the run began
error              Failure?        null     why the call failed; its message is a tombstone
rescued            Failure?        null     why the node failed, if its fallback answered
Failure                                     in files of older versions: a text
kind               str             -        one of :data:`swarm_ui.errors.FailureKind`
message            str             -
node               str             ""       name of the node that failed; "": not a node
error              str             ""       class of the exception; "": there was none
Usage                                       tokens a call used
prompt_tokens      int             0        tokens
completion_tokens  int             0        tokens
Observation                                 what a screen shows
goal               str             -
elements           [Element]       -        in screen order
app                str             ""       app, page title or URL in front
history            [Past]          []       executed actions, oldest first
actions            [str]           []       kinds of action that mean something; []: all
png                str?            null     screenshot, base64 of a PNG file
Past                                        an action already executed
action             Action          -
role               str             ""       of the element acted on
label              str             ""       of the element acted on
Element                                     one thing on the screen
index              int             -        what an action's index refers to
role               str             -        one of :data:`swarm_ui.observation.Role`
text               str             ""
description        str             ""       content description or accessible name
hint               str             ""       placeholder
value              str?            null     contents of a field
checked            bool?           null     null: cannot be checked
selected           bool?           null
clickable          bool            true
editable           bool            false
enabled            bool            true
focused            bool            false
scrollable         bool            false
bounds             [int × 4]?      null     left, top, right, bottom, px
class_name         str             ""       such as android.widget.EditText
depth              int             0        below the accessibility tree's root
Action                                      AndroidWorld's JSON vocabulary
action_type        str             -        one of :data:`swarm_ui.action.ActionType`
target             str?            null     label of the element meant; for readers
index              int?            null     of the element
x                  int?            null     px from the left
y                  int?            null     px from the top
text               str?            null
direction          str?            null     up, down, left, right
goal_status        str?            null     complete, infeasible
app_name           str?            null
keycode            str?            null
clear_text         bool?           null
to_index           int?            null     element on which a drag ends
to_x               int?            null     px from the left, where a drag ends
to_y               int?            null     px from the top
```
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from swarm_ui.errors import TraceError
from swarm_ui.storage.durable import LineFile, replacing, whole_size
from swarm_ui.trace.canonical_json import Unwritable, encoded
from swarm_ui.trace.records import TRACE_VERSION, Episode, StepRecord, Trace

T = TypeVar("T")
Record = TypeVar("Record", Episode, Trace)
Anywhere = str | os.PathLike[str]

_NOTHING = msgspec.Raw()
_NAMES: dict[type[Episode | Trace], str] = {Episode: "episode", Trace: "trace"}
_WHAT = {Episode: "an episode", Trace: "a trace", StepRecord: "a step"}


class _Line(msgspec.Struct, frozen=True, gc=False):
    version: int | None = None
    episode: msgspec.Raw = _NOTHING
    trace: msgspec.Raw = _NOTHING


_LINES = msgspec.json.Decoder(_Line)


def write_jsonl(path: Anywhere, records: Iterable[Episode | Trace]) -> None:
    """Write or replace a file. Atomic: after a crash it is either the complete old or new file.

    Raises:
        TraceError: a record has a value that JSON cannot represent, such as infinity.
    """
    target = Path(path)
    with replacing(target) as file:
        for number, record in enumerate(records, start=1):
            file.write(_line(record, target, number) + b"\n")


def append_jsonl(path: Anywhere, records: Iterable[Episode | Trace]) -> None:
    """Add records to a file (made if missing), safely on disk on return.

    Raises:
        TraceError: the file's last line was cut off, as by a crash (see :func:`repair_jsonl`); or
            a record holds what JSON cannot, and none was added.
    """
    target = Path(path)
    lines = [_line(record, target, n) for n, record in enumerate(records, start=1)]
    with FileIO(target, "a+") as file:
        size = os.fstat(file.fileno()).st_size
        if whole_size(file) < size:
            raise TraceError(
                f"{target}: the last line is cut off; drop it with repair_jsonl() first"
            )
        LineFile(file, end=size).extend(lines)


@overload
def iter_jsonl(path: Anywhere) -> Iterator[Episode]: ...
@overload
def iter_jsonl(path: Anywhere, kind: type[Record]) -> Iterator[Record]: ...
def iter_jsonl(path: Anywhere, kind: type[Any] = Episode) -> Iterator[Any]:
    """Records of a file one by one, without loading it whole.

    For any record, or any step of a long episode, without those before: see
    :func:`swarm_ui.trace.reader.open_jsonl`.

    Args:
        path: of the file.
        kind: ``Episode`` or ``Trace``, as the file was written.

    Raises:
        TraceError: a line is truncated, of another version, or not such a record.
    """
    decoder = msgspec.json.Decoder(kind)
    source = Path(path)
    try:
        file = source.open("rb")
    except OSError as error:
        raise cannot_open(source, error) from error
    with file:
        for number, line in enumerate(file, start=1):
            where = f"{source}, line {number}"
            yield decoded(decoder, payload(line, kind, where), where, kind)


@overload
def read_jsonl(path: Anywhere) -> list[Episode]: ...
@overload
def read_jsonl(path: Anywhere, kind: type[Record]) -> list[Record]: ...
def read_jsonl(path: Anywhere, kind: type[Any] = Episode) -> list[Any]:
    """All records of a file; see :func:`iter_jsonl`."""
    return list(iter_jsonl(path, kind))


def repair_jsonl(path: Anywhere) -> int:
    """Drop a last line that was cut off; returns how many bytes went."""
    with FileIO(os.fspath(path), "r+") as file:
        size = os.fstat(file.fileno()).st_size
        return size - LineFile(file).size


def trace_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one line of a file."""
    kinds = {"episode": Episode, "trace": Trace}
    schemas, definitions = msgspec.json.schema_components(
        kinds.values(), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a swarm-ui trace file",
        "anyOf": [
            {
                "type": "object",
                "properties": {"version": {"const": TRACE_VERSION}, name: schema},
                "required": ["version", name],
            }
            for name, schema in zip(kinds, schemas, strict=True)
        ],
        "$defs": definitions,
    }


def payload(line: bytes | memoryview, kind: type[Episode | Trace], where: str) -> msgspec.Raw:
    """The record of a line, not yet decoded.

    Raises:
        TraceError: the line is cut off, of another version, or holds something else.
    """
    if line[-1:] != b"\n":
        raise TraceError(f"{where}: cut off after {len(line)} bytes; repair_jsonl() drops it")
    try:
        found = _LINES.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{where}: not {_WHAT[kind]}: {error}") from error
    if found.version != TRACE_VERSION:
        raise TraceError(
            f"{where}: version {found.version}; this release reads version {TRACE_VERSION}"
        )
    raw: msgspec.Raw = getattr(found, _NAMES[kind])
    if raw:
        return raw
    for other, name in _NAMES.items():
        if getattr(found, name):
            raise TraceError(
                f"{where}: not {_WHAT[kind]} but {_WHAT[other]}; "
                f"read the file with kind={other.__name__}"
            )
    raise TraceError(f"{where}: not {_WHAT[kind]}: it has no field '{_NAMES[kind]}'")


def decoded(
    decoder: msgspec.json.Decoder[T],
    raw: msgspec.Raw,
    where: str,
    kind: type[Episode | Trace | StepRecord],
) -> T:
    """What a decoder makes of a part of a line. Raises ``TraceError`` if it is no such thing."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{where}: not {_WHAT[kind]}: {error}") from error


def cannot_open(path: Path, error: OSError) -> TraceError:
    return TraceError(f"{path}: cannot be opened: {error.strerror}")


def _line(record: Episode | Trace, target: Path, number: int) -> bytes:
    name = _NAMES.get(type(record))
    if name is None:
        raise TraceError(
            f"{target}: record {number} is a {type(record).__name__}; expected an Episode or Trace"
        )
    try:
        body = encoded(record)
    except Unwritable as error:
        raise TraceError(f"{target}: {name} {number} cannot be written: {error}") from None
    return b'{"version":%d,"%s":%s}' % (TRACE_VERSION, name.encode(), body)
