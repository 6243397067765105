"""Types of settings with their ranges; checks of a record, and of work that is continued."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.storage.run_directory import expect_no_links_out

Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0.0)]
Positive = Annotated[float, Meta(gt=0.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Open = Annotated[float, Meta(gt=0.0, lt=1.0)]


def check(settings: object, where: str) -> None:
    """Raise ``ConfigError`` that names every setting whose value its type does not allow."""
    wrong = []
    for name, kind in get_type_hints(type(settings), include_extras=True).items():
        value = getattr(settings, name)
        if is_dataclass(kind):
            if not isinstance(value, kind):  # type: ignore[arg-type]
                wrong.append(f"{name} must be {kind.__name__}(...), got {value!r}")  # type: ignore[union-attr]
            continue
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            wrong.append(f"{name}: {error}, got {value!r}")
    if wrong:
        raise ConfigError(f"{where}: " + "; ".join(wrong))


def begin(folder: Path, file: str, settings: Any, what: str, advice: str) -> None:
    """Write the settings of new work (a record or a mapping) into an empty folder, or check that
    they are those with which it was begun. ``advice``: what to do if not. Raises ``ConfigError``.
    """
    expect_no_links_out(folder)
    path = folder / file
    if path.exists():
        try:
            before = msgspec.json.decode(path.read_bytes(), type=type(settings))
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"'{path}' has no settings of a {what}: {error}") from error
        expect_same(folder, before, settings, advice)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"'{folder}' is not empty and holds no {what}; choose another folder")
    write_atomic(path, msgspec.json.format(msgspec.json.encode(settings), indent=2))


def expect_same(
    folder: Path, then: object, now: object, advice: str, *, free: Collection[str] = ()
) -> None:
    """Raise ``ConfigError`` that names every setting in which the work in a folder was begun
    otherwise, with the ``advice`` what to do. ``free``: last parts of the names of settings that
    may differ."""
    ours, theirs = (_flat(msgspec.to_builtins(each, order="sorted")) for each in (now, then))
    other = [
        f"{name}: {_short(theirs.get(name))} then, {_short(ours.get(name))} now"
        for name in {**theirs, **ours}
        if name.rpartition(".")[2] not in free and theirs.get(name) != ours.get(name)
    ]
    if other:
        told = "; ".join(other)
        raise ConfigError(f"'{folder}' was begun with other settings ({told}); {advice}")


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        known = _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {}
        found |= known or {f"{prefix}{name}": value}
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]} …"
