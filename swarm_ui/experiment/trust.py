"""What the settings in a run's folder would do beyond reading files, which needs ``--trust``."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, ModelSection, Name
from swarm_ui.experiment.environments import ENVIRONMENTS
from swarm_ui.experiment.models import kind_of

_KEY = ModelSection().key_env


def demands(config: Config, given: Collection[Name] = (), *, plays: bool = True) -> list[str]:
    """What a configuration from a folder imports, connects to, or reads from the environment.

    Args:
        config: the configuration.
        given: settings that the user gave, which are not the folder's.
        plays: whether the environment is opened too.
    """
    return list(_demands(config, given, plays))


def expect_trust(
    folder: Path, config: Config, given: Collection[Name], *, trusted: bool, plays: bool = True
) -> None:
    """Raises ``ConfigError`` if the folder demands something, and the user does not trust it."""
    found = [] if trusted else demands(config, given, plays=plays)
    if found:
        raise ConfigError(
            f"the settings in '{folder}' would {', and '.join(found)}; nothing was done. Give "
            "--trust if you know who wrote this folder, or give these settings yourself"
        )


def _demands(config: Config, given: Collection[Name], plays: bool) -> Iterator[str]:
    place, model = config.environment.name, config.model
    if plays and place not in ENVIRONMENTS and ("environment", "name") not in given:
        yield f"import and call '{place}' (the environment)"
    try:
        kind = kind_of(model)
    except ConfigError:
        return  # there is no such model, which is reported when it is opened
    if kind == "code" and ("model", "name") not in given:
        yield f"import and call '{model.name}' (the model)"
    if kind != "endpoint":
        return
    address = model.url or os.environ.get("OPENAI_BASE_URL", "")
    if ("model", "url") not in given:
        yield f"connect to {address} with the key in the variable {model.key_env}"
    elif model.key_env != _KEY and ("model", "key_env") not in given:
        yield f"send the variable {model.key_env} to {address}"
