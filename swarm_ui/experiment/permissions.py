"""The code, endpoints and variables in a folder's settings, which need the user's consent."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from swarm_ui.addresses import without_credentials
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, ModelSection, Name
from swarm_ui.experiment.environments import ENVIRONMENTS
from swarm_ui.experiment.models import kind_of, on_hub
from swarm_ui.experiment.placement.place import ray_address
from swarm_ui.experiment.plugins.run_loggers import logger_demands
from swarm_ui.experiment.plugins.wrapping import wrapper_demands
from swarm_ui.experiment.training.roles import model_sections

_KEY = ModelSection().key_env


def expect_trust(
    folder: Path, config: Config, given: Collection[Name], *, trusted: bool, plays: bool = True
) -> None:
    """Check that the user trusts the folder, if its settings run code or open connections.

    Raises:
        ConfigError: there are :func:`demands`, and ``trusted`` is false.
    """
    found = [] if trusted else list(demands(config, given, plays=plays))
    if found:
        raise ConfigError(
            f"the settings in '{folder}' would {', and '.join(found)}; nothing was done. Give "
            "--trust if you know who wrote this folder, or give these settings yourself"
        )


def demands(config: Config, given: Collection[Name] = (), *, plays: bool = True) -> Iterator[str]:
    """The code that a folder's configuration imports, its endpoints, and its environment variables.

    Args:
        config: the configuration.
        given: settings that the user gave on the command line; they need no permission.
        plays: whether the environment is opened too.
    """
    place = config.environment.name
    if plays and place not in ENVIRONMENTS and ("environment", "name") not in given:
        yield f"import and call '{place}' (the environment)"
    if plays:
        yield from wrapper_demands(config.environment.wrap)
    address = ray_address(config)
    if plays and address and ("run", "on") not in given:
        yield f"send its work to the Ray cluster at {address}"
    if plays and ("run", "log") not in given:
        yield from logger_demands(config.run.log)
    yield from _model_demands(config.model, {name for part, name in given if part == "model"})
    # The settings [critic] model, url and key_env name a model as [model] name, url, key_env do.
    own = {name.replace("model", "name") for part, name in given if part == "critic"}
    for model in model_sections(config):
        yield from _model_demands(model, own)


def _model_demands(model: ModelSection, given: Collection[str]) -> Iterator[str]:
    try:
        kind = kind_of(model)
    except ConfigError:
        return  # there is no such model, which is reported when it is opened
    if kind == "code" and "name" not in given:
        yield f"import and call '{model.name}' (the model)"
    if kind == "local" and on_hub(model) and "name" not in given:
        yield f"download '{model.name}' from the Hugging Face Hub"
    if kind != "endpoint" and not model.actor:
        return
    url, setting = (model.actor, "actor") if model.actor else (model.url, "url")
    address = without_credentials(url or os.environ.get("OPENAI_BASE_URL", ""))
    if setting not in given:
        yield f"connect to {address} with the key in the variable {model.key_env}"
    elif model.key_env != _KEY and "key_env" not in given:
        yield f"send the variable {model.key_env} to {address}"
