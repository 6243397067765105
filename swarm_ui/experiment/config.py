"""The configuration file: TOML, checked as a whole, with the location of every mistake."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class EnvironmentSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment and its episodes."""

    name: str = "phone"
    tasks: tuple[str, ...] = ()
    suite: str = "core"
    split: str = ""
    episodes: Natural = 0
    seed: Natural = 0
    max_steps: Count | None = None
    data: str = ""
    screenshots: bool = False
    published: bool = False


class ModelSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that answers for the agents."""

    name: str = "base"
    url: str = ""
    key_env: str = "OPENAI_API_KEY"
    adapters: str = ""
    device: str = "cpu"
    max_calls: Count | None = None
    max_tokens_total: Count | None = None
    rate_limit: Count | None = None
    concurrency: Count = 16
    timeout: Annotated[float, Meta(gt=0.0)] = 60.0
    vision: bool = False


class TeamSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agents, their edges, and the vote."""

    agents: Annotated[int, Meta(ge=1, le=64)] = 1
    rounds: Annotated[int, Meta(ge=1, le=16)] = 1
    edges: str = "random"
    density: Share = 0.5
    views: Literal["same", "shuffle", "window"] = "same"
    vote: Literal["majority", "probability"] = "majority"
    temperature: Annotated[float, Meta(ge=0.0)] = 0.0
    max_tokens: Count = 256
    seed: Natural = 0


class RunSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is played, and where it is written."""

    out: str = ""
    concurrency: Count = 8
    fail_under: Share | None = None
    report: bool = True


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a run."""

    environment: EnvironmentSection = EnvironmentSection()
    model: ModelSection = ModelSection()
    team: TeamSection = TeamSection()
    run: RunSection = RunSection()
    train: dict[str, Any] = {}
    """Settings of :class:`swarm_ui.optim.config.TeamConfig`, checked where it is used."""


_TYPE_NAMES = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
          "array": "a list", "object": "a section"}  # fmt: skip

Places = dict[tuple[str, ...], str]
"""Where each setting was given, such as ``"swarm-ui.toml:12"`` or ``"--agents"``."""


@dataclasses.dataclass(slots=True)
class Draft:
    """Settings as they were given, before they are checked."""

    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    places: Places = dataclasses.field(default_factory=dict)
    mistakes: list[str] = dataclasses.field(default_factory=list)

    def put(self, path: tuple[str, ...], value: object, place: str) -> None:
        """Set one setting, replacing an earlier value."""
        at: Any = self.values
        for name in path[:-1]:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                self.mistakes.append(f"{place}: '{name}' is not a section")
                return
        at[path[-1]] = value
        self.places[path] = place


def read_draft(
    path: Path | None, flags: Mapping[str, tuple[str, object]], settings: Sequence[str]
) -> Draft:
    """Combine a file, flags and ``--set`` settings; later ones override earlier ones.

    Args:
        path: the file, if any.
        flags: value by setting (``"team.agents"``), each with the flag's name; ``None``: not given.
        settings: strings such as ``"team.agents=4"``; the value is TOML or a bare word.

    Raises:
        ConfigError: the file cannot be read or is not TOML.
    """
    draft = Draft()
    if path is not None:
        _read(path, draft)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or "." not in name:
            draft.mistakes.append(f"--set {setting}: expected SECTION.NAME=VALUE")
            continue
        draft.put(tuple(name.strip().split(".")), _value(text.strip()), f"--set {name.strip()}")
    for setting, (flag, value) in flags.items():
        if value is not None:
            draft.put(tuple(setting.split(".")), value, flag)
    return draft


Finding = tuple[tuple[str, ...], str]
"""A mistake: the path of the setting and a description."""
FindMistakes = Callable[[Config, Collection[str]], Iterable[Finding]]
"""Finds mistakes that the types do not show, in the named sections only.

The other sections have values of wrong types.
"""


def checked(draft: Draft, *, train: bool = False, find: FindMistakes | None = None) -> Config:
    """The configuration of a draft without mistakes.

    Args:
        draft: the settings as they were given.
        train: check ``[train]`` too, which needs the extra ``train``.
        find: finds mistakes that the types do not show.

    Raises:
        ConfigError: all mistakes, one on each line.
    """
    mistakes = list(draft.mistakes)
    valid = _check(Config, draft.values, (), draft.places, mistakes)
    if find is not None:
        good = [name for name in Config.__struct_fields__
                if name in valid or name not in draft.values]  # fmt: skip
        for path, problem in find(msgspec.convert(valid, Config), good):
            mistakes.append(f"{_place(path, draft.places)}{problem}")
    if train and isinstance(draft.values.get("train", {}), dict):
        from swarm_ui.optim.config import TeamConfig, current_names

        settings = current_names(draft.values.get("train", {}))
        _check(TeamConfig, settings, ("train",), draft.places, mistakes)
    mistakes = list(dict.fromkeys(mistakes))
    if len(mistakes) == 1:
        raise ConfigError(mistakes[0])
    if mistakes:
        lines = "\n  ".join(mistakes)
        raise ConfigError(f"{len(mistakes)} mistakes in the configuration:\n  {lines}")
    return msgspec.convert(draft.values, Config)


def plain(config: Config) -> dict[str, object]:
    """The configuration as JSON-compatible objects."""
    return msgspec.json.decode(msgspec.json.encode(config), type=dict[str, object])


def _read(path: Path, draft: Draft) -> None:
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration '{path}': {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"'{path}' is not TOML: {error}") from error
    draft.values = values
    lines = _lines(text)
    for names in _paths(values):
        draft.places[names] = f"{path}:{lines[names]}" if names in lines else str(path)


def _paths(values: Mapping[str, Any], around: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in values.items():
        found.append((*around, name))
        if isinstance(value, dict):
            found += _paths(value, (*around, name))
    return found


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The line number of each plain key; keys written in other ways are left out."""
    section: tuple[str, ...] = ()
    found: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        head = re.match(r"\s*\[([\w.-]+)\]", line)
        if head:
            section = tuple(head[1].split("."))
            found[section] = number
            continue
        key = re.match(r"\s*([\w-]+)\s*=", line)
        if key:
            found[(*section, key[1])] = number
    return found


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check(
    kind: type, values: object, at: tuple[str, ...], places: Places, mistakes: list[str]
) -> dict[str, Any]:
    """Record the mistakes of a section and its subsections; returns the valid settings."""
    where = ".".join(at) or "the file"
    if not isinstance(values, dict):
        mistakes.append(f"{_place(at, places)}[{where}]: expected a section, got {values!r}")
        return {}
    fields = get_type_hints(kind, include_extras=True)
    valid: dict[str, Any] = {}
    for name, value in values.items():
        path = (*at, name)
        if name not in fields:
            mistakes.append(_unknown(path, list(fields), places))
        elif _is_section(fields[name]):
            before = len(mistakes)
            _check(fields[name], value, path, places, mistakes)
            if len(mistakes) == before:
                valid[name] = value
        else:
            try:
                msgspec.convert(value, fields[name])
                valid[name] = value
            except msgspec.ValidationError as error:
                mistakes.append(_wrong(path, value, fields[name], str(error), places))
    if dataclasses.is_dataclass(kind):
        try:
            msgspec.convert(valid, kind)  # runs the checks that the class itself makes
        except (msgspec.ValidationError, ConfigError) as error:
            mistakes.append(f"{_place(at, places)}[{where}]: {error}")
    return valid


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)
    )


def _unknown(path: tuple[str, ...], known: Sequence[str], places: Places) -> str:
    name, section = path[-1], ".".join(path[:-1])
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    where = f"[{section}] has no setting '{name}'" if section else f"no section [{name}]"
    return f"{_place(path, places)}{where}; {hint}"


def _wrong(path: tuple[str, ...], value: object, kind: object, problem: str, places: Places) -> str:
    section, name = ".".join(path[:-1]), path[-1]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices:
        near = difflib.get_close_matches(str(value), [str(c) for c in choices], n=1)
        problem = f"expected {', '.join(map(repr, choices))}"
        problem += f"; did you mean '{near[0]}'?" if near else ""
    else:
        for plain_type, words in _TYPE_NAMES.items():
            problem = problem.replace(f"`{plain_type}`", words)
    problem = problem[0].lower() + problem[1:]
    return f"{_place(path, places)}[{section}] {name} = {value!r}: {problem}"


def _place(path: tuple[str, ...], places: Places) -> str:
    found = places.get(path)
    return f"{found}: " if found else ""
