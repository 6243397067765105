"""Types of settings with their ranges, and the check of all settings of a record at once."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Annotated, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError

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
