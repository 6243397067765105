"""Reads settings from a file and overrides, finds all their mistakes, and writes a template."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import itertools
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, ValidationError

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, kind_of_environment
from swarm_ui.experiment.config import Config, Local, Ray, with_place
from swarm_ui.experiment.mistakes import Finding, mistakes
from swarm_ui.experiment.model_settings import AnyModel, SettingsError, meant
from swarm_ui.optim.config import FinetuneConfig
from swarm_ui.optim.stage1.corpus import CorpusConfig

_WORDS = {
    "Input should be a valid integer": "expected a whole number",
    "Input should be a valid number": "expected a number",
    "Input should be a valid string": "expected text",
    "Input should be a valid boolean": "expected true or false",
    "Input should be a valid tuple": "expected a list",
    "Input should be a valid dictionary": "expected a section",
    "Input should be": "expected",
    "Field required": "is needed",
}
_LONGEST = 200
"""Maximum number of characters of a value in an error text."""
Places = dict[str, str]
"""Where settings were given: a line of a file (``""``: the file), the flag of an option, or ``""``
for a word."""


def load(
    file: str | Path | None = None,
    overrides: Sequence[str] = (),
    *,
    base: Mapping[str, Any] | None = None,
    learning: bool = False,
) -> Config:
    """The settings of a file, with overrides such as ``"team.agents=4"``.

    Args:
        file: TOML; ``None``: the defaults.
        overrides: ``section.name=value``; the value is TOML or a bare word. A flag of the command
            line may stand before it, as in ``"--agents team.agents=4"``, for error texts.
        base: settings of a run, instead of those of a file.
        learning: also find what training cannot use.

    Raises:
        ConfigError: the file cannot be read. A ``ValueError`` too: settings are wrong; the text
            lists all mistakes.
    """
    values: dict[str, Any] = {}
    places: Places = {}
    if file is not None:
        values, places = _read(Path(file))
    elif base is not None:
        values = {name: dict(v) if isinstance(v, Mapping) else v for name, v in base.items()}
    found = list(_override(values, places, overrides, new=base is not None))
    config, wrong, bad = _validated(values)
    wrong += [m for m in mistakes(config, learning=learning, bad=bad)
              if m[0].partition(".")[0] not in bad]  # fmt: skip
    found += [_located(name, text, places) for name, text in wrong]
    if found := list(dict.fromkeys(found)):
        lines = "\n  ".join(found)
        many = f"{len(found)} mistakes in the settings:\n  {lines}"
        raise SettingsError(many if len(found) > 1 else lines)
    try:
        msgspec.json.encode(config.plain())
    except OverflowError as error:  # it could not be saved
        raise SettingsError(f"{error}: a number needs more than 64 bits") from error
    return config


def _read(path: Path) -> tuple[dict[str, Any], Places]:
    """The settings of a file, and the line of each plain key."""
    places, section = {"": str(path)}, ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows editors write a byte order mark
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"'{path}' cannot be parsed as TOML: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the configuration '{path}': {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if head := re.match(r"\s*\[([\w.-]+)\]", line):
            section = head[1]
            places[section] = f"{path}:{number}"
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            places[f"{section}.{key[1]}" if section else key[1]] = f"{path}:{number}"
    return values, places


def _override(
    values: dict[str, Any], places: Places, overrides: Sequence[str], *, new: bool = False
) -> Iterator[str]:
    """Put the overrides into the values; yields those that cannot be read. ``new``: another name of
    an environment, a model or a place drops the other settings of its section."""
    for word in overrides:
        flag, space, rest = word.partition(" ")
        if not space or "=" in flag:
            flag, rest = "", word
        setting, equals, text = rest.partition("=")
        *sections, last = (part.strip() for part in setting.split("."))
        if not equals or not sections or not all([*sections, last]):
            yield f"{word}: expected SECTION.NAME=VALUE, such as team.agents=4"
            continue
        at: Any = values
        for part in sections:
            inner = at.setdefault(part, {})
            if isinstance(inner, str) and part in _VARIANTS:  # a section given by its name alone
                inner = at[part] = with_place(inner) if part == "place" else {"name": inner}
            elif inner is None:
                inner = at[part] = {}
            at = inner
            if not isinstance(at, dict):
                break
        if not isinstance(at, dict):
            yield f"{word}: '{'.'.join(sections)}' is not a section"
            continue
        value = parsed(text.strip())
        if last in ("name", "url"):
            at.pop("kind", None)  # the kind of a model follows from them
        if new and last == "name" and sections[0] in _VARIANTS and value != at.get("name"):
            kept = {each for each in at if f"{'.'.join(sections)}.{each}" in places}
            for each in {*at} - kept:
                del at[each]
        at[last] = value
        places[".".join([*sections, last])] = flag


def parsed(text: str) -> object:
    """A value of a setting: TOML, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def expect_read(overrides: Sequence[str], unread: Sequence[str], command: str) -> None:
    """Raise ``ConfigError`` if settings are given that a command does not read."""
    for word in overrides:
        setting = word.partition("=")[0].rpartition(" ")[2]
        if any(setting.startswith(name) for name in unread):
            raise SettingsError(f"{setting}: swarm-ui {command} does not read it; leave it out")


def _validated(values: dict[str, Any]) -> tuple[Config, list[Finding], set[str]]:
    """The settings, the mistakes in them, and the sections that have some, which get defaults."""
    team, train = values.get("team"), values.get("train", {})
    named = isinstance(team, dict) and team.get("edges", "random") != "random"
    if named and isinstance(train, dict) and "edges" not in train:
        values["train"] = {**train, "edges": "fixed"}  # they are kept, not drawn again
    try:
        return Config.model_validate(values), [], set()
    except ValidationError as error:
        found = [finding for one in error.errors() for finding in _described(one, values)]
    bad = {name.partition(".")[0] for name, _ in found if name}
    good = {name: value for name, value in values.items() if name not in bad}
    return Config.model_validate(good), found, bad


def _described(error: Any, values: Mapping[str, Any]) -> Iterator[Finding]:
    """An error of pydantic as mistakes, each with the setting that it is about."""
    place = ("", *error["loc"])
    name = ".".join(
        str(part)
        for before, part in itertools.pairwise(place)
        if not (before in ("model", "place") and part in _VARIANTS[before])
    )
    text, kind = error["msg"].removeprefix("Value error, "), error["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        yield name, "no such setting" + _hint(name, values)
    elif kind == "literal_error":
        expected = error["ctx"]["expected"]
        choices = re.findall(r"'([^']*)'", expected)
        near = difflib.get_close_matches(str(error["input"]), choices, n=1)
        yield name, f"got {_shown(error['input'])}, expected {expected}{meant(near)}"
    elif kind == "union_tag_invalid":
        yield f"{name}.name", f"expected {error['ctx']['expected_tags']}"
    else:
        for plain, words in _WORDS.items():
            text = text.replace(plain, words)
        if kind not in ("missing", "value_error"):
            text = f"got {_shown(error['input'])}, {text.partition(',')[0]}"
        yield name, text


def _hint(wrong: str, values: Mapping[str, Any]) -> str:
    """A hint at the setting that was meant: this name elsewhere, a near one, or another variant."""
    section, last = wrong.partition(".")[0], wrong.rpartition(".")[2]
    if section not in Config.model_fields:
        return meant(difflib.get_close_matches(section, list(Config.model_fields), n=1))
    env = values.get("env", {})
    known = setting_names(str(env.get("name", "phone") if isinstance(env, dict) else env))
    far = {*_RECORDS} - {section}  # of other commands
    known = [each for each in known if each != wrong and each.partition(".")[0] not in far]
    same = [each for each in known if each.rpartition(".")[2] == last]
    others = [other for other, kind in _VARIANTS.get(section, {}).items()
              if last in kind.model_fields]  # fmt: skip
    if others and not same:
        return f" here, only in {section} {', '.join(others)}"
    if near := same or difflib.get_close_matches(wrong, known, n=1, cutoff=0.8):
        return meant(near)
    here = [each.partition(".")[2] for each in known if each.startswith(f"{section}.")]
    return f"; known: {', '.join(here)}"


def _located(name: str, text: str, places: Places) -> str:
    """A mistake with the place where the setting was given: the option, or the file and the
    setting."""
    prefixes = [*itertools.accumulate(name.split("."), "{}.{}".format)]
    place = next((places[each] for each in [*reversed(prefixes), ""] if each in places), "")
    by_option = place.startswith("--") or (place.isupper() and place.isalpha())
    return ": ".join(filter(None, [place, "" if by_option else name, text]))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = "a value that is too large to show"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_VARIANTS: dict[str, Mapping[str, type[BaseModel]]] = {
    "env": ENVIRONMENTS,
    "model": {kind.model_fields["kind"].default: kind for kind in get_args(AnyModel)},
    "place": {kind.model_fields["name"].default: kind for kind in (Local, Ray)},
}
_RECORDS: dict[str, type] = {"synthesize": CorpusConfig, "finetune": FinetuneConfig}


def _kinds(section: str) -> Mapping[str, type]:
    """The classes whose settings stand in a section, by the name of the variant."""
    if section in _VARIANTS:
        return _VARIANTS[section]
    return {"": _RECORDS.get(section) or type(Config.model_fields[section].default)}


def setting_names(env: str) -> list[str]:
    """All settings as ``section.name``, in an environment of that name."""
    found: dict[str, None] = {}
    for section in Config.model_fields:
        kinds = [kind_of_environment(env)] if section == "env" else _kinds(section).values()
        found |= dict.fromkeys(f"{section}.{name}" for kind in kinds for name, _, _ in _tree(kind))
    return list(found)


def template() -> str:
    """A TOML file with every setting, its default and a comment; all lines but the sections are
    commented out."""
    lines = [
        "# Settings of swarm-ui. Every value is the default; delete the # of a line to change it.",
        "# swarm-ui eval --config swarm-ui.toml team.agents=4    words override this file",
    ]
    for section in Config.model_fields:
        lines += ["", f"[{section}]"]
        written: set[str] = set()  # what all environments have stands with the first one
        for title, kind in _kinds(section).items():
            lines += [f"# -- {title}"] if title else []
            for name, default, note in _tree(kind):
                shown = "..." if default is None else json.dumps(default, ensure_ascii=False)
                line = f"# {name} = {shown}"
                if (section, name) != ("model", "kind") and line not in written:
                    lines.append(f"{line:<36}  # {note}" if note else line)
                    written.add(line)
    return "\n".join(lines) + "\n"


def _tree(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Each setting of a class: its name, its default, and the first sentence about it."""
    notes = _field_notes(kind)
    if issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        defaults = {name: None if f.is_required() else f.default for name, f in fields}
    else:
        made = kind()
        names = getattr(kind, "__dataclass_fields__", None) or kind.__struct_fields__
        defaults = {name: getattr(made, name) for name in names}
    for name, default in defaults.items():
        if isinstance(default, BaseModel) or dataclasses.is_dataclass(default):
            yield from _tree(type(default), f"{prefix}{name}.")
        else:
            note = notes.get(name, "").partition(". ")[0].rstrip(".").replace("``", "")
            yield f"{prefix}{name}", default, " ".join(note.split())


def _field_notes(kind: Any) -> dict[str, str]:
    """The texts below the fields of a class and its bases in the source."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("swarm_ui."):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for one, after in itertools.pairwise(body.body):
            if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[one.target.id] = str(after.value.value)
    return found
