"""The configuration file: TOML, checked as a whole, with the location of every mistake."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError
from swarm_ui.json_text import encodable

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0.0)]
Temperature = Amount
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class EnvironmentSection(_Section, frozen=True, kw_only=True):
    """The environment and its episodes."""

    name: str = "phone"
    tasks: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    """Tasks that training leaves out, for a test of one's own."""
    devices: Count = 32
    apps: Count = 10
    wordings: Literal["few", "many"] = "many"
    family: str = "android_world"
    suite_seed: Natural | None = None
    combinations: Count = 1
    split: str = ""
    episodes: Natural = 0
    seed: Natural = 0
    max_steps: Count | None = None
    data: str = ""
    screenshots: bool = False
    published: bool = False
    wrap: tuple[str, ...] = ()
    """Wrappers, the innermost first; see :mod:`swarm_ui.experiment.plugins.wrapping`."""


class ModelSection(_Section, frozen=True, kw_only=True):
    """The model that answers for the agents."""

    name: str = "base"
    url: str = ""
    key_env: str = "OPENAI_API_KEY"
    adapters: str = ""
    prompt_format: Literal["", "json", "compact"] = ""
    prompt_tokens: Count | None = None
    constrained: bool | None = None
    actor: str = ""
    actor_name: str = ""
    device: str = "cpu"
    quantize: Literal["", "4bit"] = ""
    max_calls: Count | None = None
    max_tokens_total: Count | None = None
    rate_limit: Count | None = None
    concurrency: Count = 16
    timeout: Annotated[float, Meta(gt=0.0)] = 60.0
    vision: bool = False
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    send_seed: bool = False


class TeamSection(_Section, frozen=True, kw_only=True):
    """The agents, their edges, and the vote."""

    agents: Annotated[int, Meta(ge=1, le=64)] = 1
    rounds: Annotated[int, Meta(ge=1, le=16)] = 1
    edges: str = "random"
    density: Share = 0.5
    views: Literal["same", "shuffle", "window", "pane"] = "same"
    vote: Literal["majority", "probability"] = "majority"
    temperature: Temperature | None = None
    temperatures: tuple[Temperature, ...] = ()
    """A temperature for each agent, instead of ``temperature``; empty: all agents have the same."""
    max_tokens: Count | None = None
    seed: Natural = 0


class CriticSection(_Section, frozen=True, kw_only=True):
    """Critic, adversary and teacher of ``swarm-ui train``."""

    kind: Literal["", "scripted", "llm", "learned", "outcome"] = ""
    judge: Literal["", "scripted", "llm", "learned"] = ""
    adversary: Literal["scripted", "llm", "none"] = "scripted"
    teacher: Literal["scripted", "llm", "none"] = "none"
    trust: bool = False
    """Whether the critic is weighed against the outcome, with a learned weight."""
    model: str = ""
    url: str = ""
    key_env: str = "OPENAI_API_KEY"
    max_calls: Count | None = None
    max_tokens_total: Count | None = None


class RunSection(_Section, frozen=True, kw_only=True):
    """How the episodes of a run are played, and its folder."""

    out: str = ""
    concurrency: Count = 8
    fail_under: Share | None = None
    max_masked: Share = 0.2
    report: bool = True
    log: tuple[str, ...] = ()
    """Loggers; see :mod:`swarm_ui.experiment.plugins.run_loggers`."""
    on: str = ""
    """Where episodes are played: ``local`` (or empty), ``ray`` or ``ray:HOST:PORT``."""


class RaySection(_Section, frozen=True, kw_only=True):
    """Workers of a Ray cluster, for ``[run] on``."""

    workers: Count | None = None
    """Maximum number of workers; ``None``: as many as the cluster has room for."""
    episodes: Count = 1
    """Number of concurrent episodes of a worker."""
    cpus: Amount = 1.0
    gpus: Amount = 0.0
    resources: dict[str, Amount] | None = None
    """Custom resources of a worker; ``None``: those that the environment needs."""
    model_actors: Natural | None = None
    """Actors that hold the model for all workers; 0: each worker loads its own. ``None``: see
    :func:`swarm_ui.experiment.placement.shared_model.model_actors`."""
    gpus_per_model: Amount = 0.0
    """Share of a GPU for each actor that holds the model."""
    shared_folder: bool = False
    """Training: all machines see the folder of the run under the same path, and adapters are
    published there. If not, they are sent through Ray's object store."""


class Config(_Section, frozen=True, kw_only=True):
    """All settings of a run."""

    environment: EnvironmentSection = EnvironmentSection()
    model: ModelSection = ModelSection()
    team: TeamSection = TeamSection()
    run: RunSection = RunSection()
    ray: RaySection = RaySection()
    critic: CriticSection = CriticSection()
    train: dict[str, Any] = {}
    """Settings of :class:`swarm_ui.optim.config.TeamConfig`, checked where it is used."""
    synthesize: dict[str, Any] = {}
    """Settings of :class:`swarm_ui.optim.stage1.CorpusConfig`, checked where it is used."""
    finetune: dict[str, Any] = {}
    """Settings of :class:`swarm_ui.optim.stage1.FinetuneConfig`, checked where it is used."""


_DEEPEST = 16
"""Maximum nesting depth of sections and lists."""
_LONGEST = 200
"""Maximum number of characters of a value in an error text."""
_SECTIONS = (EnvironmentSection, ModelSection, TeamSection, RunSection, RaySection, CriticSection)
_TYPE_NAMES = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
          "array": "a list", "object": "a section"}  # fmt: skip

Name = tuple[str, ...]
"""A setting by section and name, such as ``("team", "agents")``."""
Finding = tuple[Name, str]
"""A mistake: the setting and a description."""
FindMistakes = Callable[[Config, Collection[str]], Iterable[Finding]]
"""Finds mistakes that the types do not show, in the named sections; the others have wrong types."""


@dataclasses.dataclass(slots=True)
class Draft:
    """Settings before they are checked."""

    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    places: dict[Name, str] = dataclasses.field(default_factory=dict)
    """Location of each setting, such as ``"swarm-ui.toml:12"`` or ``"--agents"``."""
    mistakes: list[str] = dataclasses.field(default_factory=list)

    def put(self, name: Name, value: object, place: str) -> None:
        """Set one setting, replacing an earlier value."""
        at: Any = self.values
        for part in name[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                self.mistakes.append(f"{place}: '{part}' is not a section")
                return
        at[name[-1]] = value
        self.places[name] = place

    def found(self, name: Name, problem: str, *, within: bool = False) -> None:
        """Record a mistake, with the location of the setting, or (``within``) of a part of it."""
        place = self.places.get(name)
        if place is None and within:
            place = next((p for n, p in self.places.items() if n[: len(name)] == name), None)
        self.mistakes.append(f"{place}: {problem}" if place else problem)


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
    draft = Draft() if path is None else _read(path)
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


def checked(
    draft: Draft,
    *,
    train: bool = False,
    find: FindMistakes | None = None,
    stage1: Mapping[str, type] | None = None,
) -> Config:
    """The configuration of a draft.

    Args:
        draft: the settings.
        train: check ``[train]`` too, which needs the extra.
        find: finds mistakes that the types do not show.
        stage1: the types of ``[synthesize]`` and ``[finetune]``, if they are to be checked.

    Raises:
        ConfigError: all mistakes, one on each line.
    """
    draft = dataclasses.replace(draft, mistakes=list(draft.mistakes))
    _check_values(draft)
    valid = _check(Config, draft.values, (), draft)
    if find is not None:
        good = [name for name in Config.__struct_fields__
                if name in valid or name not in draft.values]  # fmt: skip
        for name, problem in find(msgspec.convert(valid, Config), good):
            draft.found(name, problem)
    if train and isinstance(draft.values.get("train", {}), dict):
        from swarm_ui.optim.config import TeamConfig

        _check(TeamConfig, draft.values.get("train", {}), ("train",), draft)
    for part, kind in (stage1 or {}).items():
        if isinstance(draft.values.get(part, {}), dict):
            _check(kind, draft.values.get(part, {}), (part,), draft)
    mistakes = list(dict.fromkeys(draft.mistakes))
    if len(mistakes) == 1:
        raise ConfigError(mistakes[0])
    if mistakes:
        lines = "\n  ".join(mistakes)
        raise ConfigError(f"{len(mistakes)} mistakes in the configuration:\n  {lines}")
    return msgspec.convert(draft.values, Config)


def plain(config: object) -> dict[str, Any]:
    """A record of settings as JSON-compatible objects."""
    return msgspec.json.decode(msgspec.json.encode(config), type=dict[str, Any])


def _read(path: Path) -> Draft:
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows editors write a byte order mark
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the configuration '{path}': {error}") from error
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"'{path}' cannot be parsed as TOML: {error}") from error
    lines = _lines(text)
    places = {n: f"{path}:{lines[n]}" if n in lines else str(path) for n in _names(values)}
    return Draft(values, places)


def _names(values: Mapping[str, Any], around: Name = ()) -> Iterator[Name]:
    for name, value in values.items():
        yield (*around, name)
        if isinstance(value, dict) and len(around) < _DEEPEST:
            yield from _names(value, (*around, name))


def _lines(text: str) -> dict[Name, int]:
    """The line number of each plain key; keys written in other ways are left out."""
    section: Name = ()
    found: dict[Name, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"\s*\[([\w.-]+)\]", line):
            section = tuple(head[1].split("."))
            found[section] = number
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            found[(*section, key[1])] = number
    return found


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--set: the value {_shown(text)} cannot be used: {error}") from error


def setting_text(value: object) -> str:
    """A value as ``--set`` reads it."""
    if isinstance(value, str) and _value(value) == value:
        return value
    return msgspec.json.encode(value).decode()


def _check_values(draft: Draft) -> None:
    """Raise ``ConfigError`` for values that no setting accepts and JSON cannot represent."""
    waiting: list[tuple[Name, Any]] = [((), draft.values)]
    while waiting:
        name, value = waiting.pop()
        problem = ""
        if isinstance(value, dict | list | tuple):
            if len(name) > _DEEPEST:
                problem = f"nested deeper than {_DEEPEST} levels"
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*name, str(key)), item) for key, item in pairs]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            problem = "an integer that needs more than 64 bits"
        elif isinstance(value, float) and not math.isfinite(value):
            problem = f"{value} is not a finite number"
        elif isinstance(value, str) and "\0" in value:
            problem = "text that contains a NUL character"
        elif isinstance(value, str) and encodable(value) != value:
            problem = "text that is not Unicode, such as a file name in another encoding"
        if problem:
            place = next((p for n, p in draft.places.items() if n == name[: len(n)]), "")
            where = _shown(".".join(name[:_DEEPEST]), quote=False)
            raise ConfigError(f"{place or 'the configuration'}: {where}: {problem}")


def _shown(value: object, *, quote: bool = True) -> str:
    """A value in an error text, which may be long."""
    text = repr(value) if quote else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _check(kind: type, values: object, at: Name, draft: Draft) -> dict[str, Any]:
    """Record the mistakes of a section and its subsections; returns the valid settings."""
    where = ".".join(at) or "the file"
    if not isinstance(values, dict):
        draft.found(at, f"[{where}]: expected a section, got {_shown(values)}")
        return {}
    fields = get_type_hints(kind, include_extras=True)
    valid: dict[str, Any] = {}
    for name, value in values.items():
        path = (*at, name)
        if name not in fields:
            draft.found(path, _unknown(path, kind), within=True)
        elif _is_section(fields[name]):
            before = len(draft.mistakes)
            _check(fields[name], value, path, draft)
            if len(draft.mistakes) == before:
                valid[name] = value
        else:
            try:
                msgspec.convert(value, fields[name])
                valid[name] = value
            except msgspec.ValidationError as error:
                draft.found(path, _wrong(path, value, fields[name], str(error)), within=True)
    if kind is not Config and kind not in _SECTIONS:
        try:
            msgspec.convert(valid, kind)  # runs the checks that the class itself makes
        except (msgspec.ValidationError, ConfigError) as error:
            draft.found(at, f"[{where}]: {error}")
    return valid


def _is_section(kind: object) -> bool:
    return dataclasses.is_dataclass(kind) or kind in _SECTIONS


def _named(name: str, kind: type, at: Name) -> Iterator[str]:
    """The settings of this name in a section and its subsections."""
    for field, inner in get_type_hints(kind).items():
        if _is_section(inner):
            yield from _named(name, inner, (*at, field))
        elif field == name:
            yield ".".join((*at, field))


def _unknown(path: Name, kind: type) -> str:
    name, section, known = path[-1], ".".join(path[:-1]), list(get_type_hints(kind))
    near = [*_named(name, kind, path[:-1]), *_named(name, Config, ())]  # in another section
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = " or ".join(f"'{setting}'" for setting in dict.fromkeys(near))
    hint = f"did you mean {meant}?" if near else f"known: {', '.join(known)}"
    where = f"[{section}] has no setting '{name}'" if section else f"no section [{name}]"
    return f"{where}; {hint}"


def _wrong(path: Name, value: object, kind: object, problem: str) -> str:
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices:
        near = difflib.get_close_matches(str(value), [str(c) for c in choices], n=1)
        problem = f"expected {', '.join(map(repr, choices))}"
        problem += f"; did you mean '{near[0]}'?" if near else ""
    for plain_type, words in _TYPE_NAMES.items():
        problem = problem.replace(f"`{plain_type}`", words)
    problem = problem[0].lower() + problem[1:]
    return f"[{'.'.join(path[:-1])}] {path[-1]} = {_shown(value)}: {problem}"
