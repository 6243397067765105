"""The settings of a model: a union chosen by its kind, which follows from its name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from swarm_ui.environments.benchmark import Count
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.plugins import plugins
from swarm_ui.nodes.models.pretrained.catalogue import (
    PRETRAINED,
    is_hub_name,
    not_pulled,
    pulled_folder,
)
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS


class SettingsError(ConfigError, ValueError):
    """Settings are wrong; the text lists all mistakes."""


def wrong(name: str, text: str, value: object) -> ValidationError:
    """The error of a validator about one setting of its section."""
    kind = PydanticCustomError("value_error", "{text}", {"text": text})
    return ValidationError.from_exception_data("", [{"type": kind, "loc": (name,), "input": value}])


def meant(near: Sequence[str]) -> str:
    """A hint at the nearest names; empty if there are none."""
    return f"; did you mean '{' or '.join(near)}'?" if near else ""


class Section(BaseModel):
    """A section of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Client(Section):
    """How an endpoint is asked."""

    key_env: str = "OPENAI_API_KEY"
    """The variable that holds the key. The key itself is no setting."""
    max_calls: Count | None = None
    """Budget: requests."""
    max_tokens_total: Count | None = None
    """Budget: tokens of prompts and replies."""
    rate_limit: Count | None = None
    """Requests per second."""
    concurrency: Count = 16
    """Concurrent requests."""
    timeout: Annotated[float, Field(gt=0.0)] = 60.0
    """Seconds of one attempt."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The endpoint's name for the maximum length of a reply."""


class Actor(Client):
    """A vLLM server that acts with the adapters of a learner in this process."""

    url: str
    name: str = ""
    """The model there; empty: its only base model."""


class Agent(Section):
    """An embedded agent: one that ships, or the folder of one."""

    kind: Literal["agent"] = "agent"
    name: str = "base"
    adapters: str = ""
    """``RUN/adapters`` of a trained team, or the folder or name of one adapter for all agents."""


class Language(Section):
    """A language model in this process: a folder, a pulled model, or a name on the hub."""

    kind: Literal["local"] = "local"
    name: str
    adapters: str = ""
    """``RUN/adapters`` of a trained team, or the folder or name of one adapter for all agents."""
    prompt_format: Literal["", "json", "compact"] = ""
    """Format of prompts and replies; empty: the adapter's, or else the model's own."""
    prompt_tokens: Count | None = None
    """Longer prompts are shortened; ``None``: the context of the model less the reply."""
    constrained: bool | None = None
    """Whether replies are only actions that are possible; ``None``: in the compact format."""
    device: str = "cpu"
    """Where it runs; ``auto``: on all devices."""
    vision: bool = False
    """It reads screenshots."""
    actor: Actor | None = None
    """Training: a server that acts for it."""


class Endpoint(Client):
    """A model at an OpenAI-compatible endpoint."""

    kind: Literal["endpoint"] = "endpoint"
    name: str
    """The name that the endpoint serves."""
    url: str = ""
    """Up to ``/v1``; empty: the variable ``OPENAI_BASE_URL``."""
    adapters: Literal["", "served"] = ""
    """``served``: the endpoint serves an adapter under each agent's name."""
    prompt_format: Literal["", "json", "compact"] = ""
    """Format of prompts and replies; empty: json."""
    prompt_tokens: Count | None = None
    """Longer prompts are shortened; ``None``: none is."""
    vision: bool = False
    """It reads screenshots."""
    send_seed: bool = False
    """Send seeds, to an endpoint that can repeat its replies (vLLM, SGLang)."""


class Code(Section):
    """A model that a plug-in or ``module:factory`` makes; or ``script:FILE``: the replies of a text
    file, one on each line, repeated, or those of a trace file."""

    kind: Literal["code"] = "code"
    name: str
    adapters: ClassVar[str] = ""

    @property
    def script(self) -> Path | None:
        """The file of a script."""
        scheme, _, file = self.name.partition(":")
        return Path(file) if scheme == "script" else None


AnyModel = Agent | Language | Endpoint | Code
IN_PROCESS = (Agent, Language)
"""Models that run in this process and can be trained."""


def kind_of(name: str, url: str = "") -> str:
    """The kind of a model by its name. Raises ``ConfigError`` if it is unknown or not pulled."""
    if url:
        return "endpoint"
    if name in SHIPPED_AGENTS:
        return "agent"
    if name.startswith("script:"):
        return "code"
    if os.path.isfile(os.path.join(name, "words.json")):  # any text may stand here
        return "agent"
    if os.path.isfile(os.path.join(name, "config.json")):
        return "local"
    known = name in PRETRAINED
    if known and pulled_folder(name) is not None:
        return "local"
    if not known and name in plugins("models"):
        return "code"
    if os.environ.get("OPENAI_BASE_URL"):
        return "endpoint"
    if known:
        raise not_pulled(name)
    if ":" in name:
        return "code"
    if is_hub_name(name):
        return "local"
    names = (*SHIPPED_AGENTS, *PRETRAINED, *plugins("models"))
    near = difflib.get_close_matches(name, names, n=1)
    raise ConfigError(
        f"no model '{name}': expected {', '.join(names)}, the folder of a model, org/name on the "
        "Hugging Face Hub, script:FILE, module:factory, or with model.url the name that an "
        f"endpoint serves{meant(near)}"
    )


def _with_kind(values: object) -> object:
    """A model by its name alone, or by settings that name no kind."""
    if isinstance(values, str):
        values = {"name": values}
    if not isinstance(values, Mapping) or "kind" in values:
        return values
    name, url = values.get("name", "base"), values.get("url", "")
    if not isinstance(name, str) or not isinstance(url, str):
        return {"kind": "agent", **values}
    if url and "name" not in values:
        raise wrong("name", "an endpoint needs the name that it serves", "")
    try:
        return {"kind": kind_of(name, url), **values}
    except ConfigError as error:
        raise wrong("name", str(error), name) from error


Model = Annotated[Annotated[AnyModel, Field(discriminator="kind")], BeforeValidator(_with_kind)]
