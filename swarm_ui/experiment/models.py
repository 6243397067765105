"""The model that answers for the agents, chosen by its name."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.adapter_metadata import CRITIC_FILE, read_metadata
from swarm_ui.addresses import without_credentials
from swarm_ui.errors import ConfigError, MissingExtra, SwarmError
from swarm_ui.experiment.config import Config, Finding, ModelSection
from swarm_ui.experiment.long_lived import long_lived
from swarm_ui.experiment.plugins.entry_points import plugin, plugin_names
from swarm_ui.experiment.teams import agent_names
from swarm_ui.experiment.user_code import made_of
from swarm_ui.model import ChatModel, close_model
from swarm_ui.nodes.models.pretrained.catalogue import (
    AGENT_ADAPTERS,
    PRETRAINED,
    adapter_folder,
    is_hub_name,
    not_pulled,
    pulled_folder,
)
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS, agent_folder

if TYPE_CHECKING:
    from swarm_ui.nodes import ChatOptions, OpenAIModel

IN_PROCESS = ("base", "agent", "local")
"""Kinds of models that run in this process and can be trained."""
SERVED = "served"
"""A value of ``model.adapters``: the endpoint serves an adapter under each agent's name."""
SINGLE = "team"
"""Name of the adapter if ``model.adapters`` is the folder of one, which all agents use."""
_LANGUAGE_SETTINGS = (
    ("prompt_format", ("endpoint", "local"), "that reads prompts in a chosen format"),
    ("prompt_tokens", ("endpoint", "local"), "whose prompts can be shortened"),
    ("constrained", ("local",), "in this process"),
    ("quantize", ("local",), "in this process"),
)
"""Settings of ``[model]`` with the kinds of models that have them, and a description of these."""


def kind_of(section: ModelSection) -> str:
    """The kind of a model: ``base`` (an agent of this package), ``endpoint``, ``script``, ``code``
    (``module:factory``, or the name of a plug-in), ``agent`` (the folder of such an agent) or
    ``local`` (a model of transformers: a folder, a pulled model, or a name on the hub).

    Raises:
        ConfigError: the name is unknown, or the model was not pulled.
    """
    name = section.name
    if section.url:
        return "endpoint"
    if name in SHIPPED_AGENTS:
        return "base"
    if name.startswith("script:"):
        return "script"
    if os.path.isfile(os.path.join(name, "words.json")):  # any text may stand here
        return "agent"
    if os.path.isfile(os.path.join(name, "config.json")):
        return "local"
    known = name in PRETRAINED
    if known and pulled_folder(name) is not None:
        return "local"
    if not known and plugin("models", name) is not None:
        return "code"
    if os.environ.get("OPENAI_BASE_URL"):
        return "endpoint"
    if known:
        raise not_pulled(name)
    if ":" in name:
        return "code"
    if is_hub_name(name):
        return "local"
    names = ", ".join((*SHIPPED_AGENTS, *PRETRAINED, *plugin_names("models")))
    raise ConfigError(
        f"no model '{name}': expected {names}, the folder of a model, "
        "org/name on the Hugging Face Hub, script:FILE, module:factory, or with --url the name "
        "that an endpoint serves"
    )


def on_hub(section: ModelSection) -> bool:
    """Whether the model is one of the Hugging Face Hub."""
    return kind_of(section) == "local" and is_hub_name(section.name)


def model_findings(
    section: ModelSection, agents: int, learned: Sequence[str] = ()
) -> Iterator[Finding]:
    """Mistakes in the choice of a model.

    Args:
        section: the choice.
        agents: this many agents need an adapter each; 0: not known.
        learned: the adapters that a training run starts from; empty: nothing is trained.
    """
    try:
        kind = kind_of(section)
    except ConfigError as error:
        yield ("model", "name"), str(error)
        return
    if kind == "script":
        try:
            _scripted(Path(section.name.partition(":")[2]))
        except SwarmError as error:
            yield ("model", "name"), str(error)
    for setting, kinds, who in _LANGUAGE_SETTINGS:
        if getattr(section, setting) not in ("", None) and kind not in kinds:
            problem = f"'{section.name}' is not a language model {who}; leave it out"
            yield ("model", setting), problem
    if section.actor and kind != "local":
        problem = f"'{section.name}' cannot be trained for a server that acts; "
        yield ("model", "actor"), problem + "--learner must be the language model that it serves"
    if section.actor and section.vision:
        problem = "a server cannot act for a vision-language model of this process; leave it out"
        yield ("model", "actor"), problem
    adapters, at = section.adapters, ("model", "adapters")
    if kind == "endpoint":
        if section.name in SHIPPED_AGENTS:
            yield ("model", "url"), "--url needs --model NAME, the name that the endpoint serves"
        if adapters not in ("", SERVED):
            yield at, (f"an endpoint serves its own adapters; write '{SERVED}' to ask for one "
                       "adapter for each agent, by the agent's name")  # fmt: skip
    elif adapters and kind not in IN_PROCESS:
        yield at, f"the model '{section.name}' cannot use adapters"
    elif adapters:
        try:
            _check_adapters(section, agents, learned)
        except ConfigError as error:
            yield at, str(error)


def describe_model(section: ModelSection) -> str:
    """A description of the model, without credentials."""
    kind = kind_of(section)
    if kind == "endpoint":
        where = section.url or os.environ.get("OPENAI_BASE_URL", "")
        return f"{section.name} at {without_credentials(where)}"
    if section.actor:
        where = without_credentials(section.actor)
        return f"{section.name} (learns in this process, acts at {where})"
    found = plugin("models", section.name) if kind == "code" else None
    if found is not None:
        return str(found)
    shipped = f"the {section.name} agent that ships (in this process)"
    words = {"base": shipped, "script": section.name}
    return words.get(kind, f"{section.name} (in this process)")


def silence_transformers() -> None:
    """Hide the progress bars and the FutureWarnings of transformers."""
    import transformers

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\..*")


@asynccontextmanager
async def open_model(section: ModelSection, loaded: Any = None) -> AsyncIterator[ChatModel]:
    """Open the model; it is closed when the block is left.

    Args:
        section: the choice.
        loaded: the result of an earlier :func:`load_in_process`, if any.

    Raises:
        ConfigError: there is no such model, or it cannot be loaded.
        ModelError: the endpoint does not answer, or does not serve the model.
    """
    if loaded is not None:
        model = loaded
    elif kind_of(section) == "endpoint":
        model = _endpoint(section)
        await model.check()
    else:
        model = made_model(section)
    try:
        yield model
    finally:
        await close_model(model)


def made_model(section: ModelSection) -> Any:
    """A model that is not at an endpoint. Raises ``ConfigError`` if there is none, or it cannot be
    loaded."""
    kind = kind_of(section)
    if kind == "script":
        return _scripted(Path(section.name.partition(":")[2]))
    if kind == "code":
        return made_of("models", section.name, ChatModel, ("name", "generate"))
    return load_in_process(section)


@cache
def model_of_process(section: ModelSection) -> Any:
    """:func:`load_in_process`; later calls in the same process return the same model."""
    return load_in_process(section)


def load_in_process(section: ModelSection, learned: Sequence[str] = ()) -> Any:
    """A model of this process, with its adapters.

    Args:
        section: the choice.
        learned: adapters that are to be trained. If ``section.adapters`` is the folder of one
            adapter, each of them starts as a copy of it.

    Raises:
        ConfigError: it cannot be loaded.
    """
    try:
        local = kind_of(section) == "local"
        with long_lived():
            silence_transformers()
            kind = _language_model(section.vision) if local else _embedded_agent()
        if local:
            model: Any = kind.named(
                section.name,
                device=section.device,
                quantize=section.quantize,
                prompt_format=section.prompt_format,
                prompt_tokens=section.prompt_tokens,
                constrained=section.constrained,
            )
        else:
            model = kind.load(agent_folder(section.name))
    except ImportError as error:
        raise MissingExtra("train", "a model in this process", error.name or "torch") from error
    folder = adapter_folder(section.adapters)
    if section.adapters and _is_adapter(folder):
        for name in learned or (SINGLE,):
            model.load_adapter(folder, name)
    elif section.adapters:
        model.load_adapters(folder)
    return model


def _embedded_agent() -> Any:
    """The class of the embedded agents."""
    import torch

    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    torch.set_num_threads(1)  # small matrices gain nothing from more threads
    return LocalModel


def _language_model(vision: bool) -> Any:
    """The class of models of transformers that read text, or text and pictures."""
    if vision:
        from swarm_ui.nodes.models.transformers.vision_model import VisionModel

        return VisionModel
    from swarm_ui.nodes.models.transformers.causal_model import CausalModel

    return CausalModel


def adapter_names(section: ModelSection, agents: int) -> list[str | None]:
    """The name of each agent's adapter; ``None`` for agents that use the base model."""
    if not section.adapters:
        return [None] * agents
    if section.adapters == SERVED:
        return list(agent_names(agents))
    folder = adapter_folder(section.adapters)
    return [SINGLE] * agents if _is_adapter(folder) else list(_trained_adapters(folder, agents))


def learned_adapters(config: Config) -> tuple[str, ...]:
    """The adapters that a training run with these settings trains."""
    return tuple(agent_names(config.team.agents))


def starts_apart(config: Config) -> bool:
    """Whether a training starts from adapters that differ, so that no iteration trains them as
    one."""
    folder = adapter_folder(config.model.adapters)
    if not config.model.adapters or _is_adapter(folder):
        return False
    names = learned_adapters(config)
    files = [file for name in names for file in (folder / name).glob("adapter_model.safetensors")]
    return len({file.read_bytes() for file in files}) > 1


def _is_adapter(folder: Path) -> bool:
    """Whether a folder holds one adapter, and not several."""
    return os.path.isfile(folder / "adapter_config.json")


def _check_adapters(section: ModelSection, agents: int, learned: Sequence[str]) -> None:
    folder = adapter_folder(section.adapters)
    places = [folder]
    if not _is_adapter(folder):
        if learned:
            known = _saved_adapters(folder)
            missing = [name for name in learned if name not in known]
            if missing:
                raise ConfigError(_lacking(folder, known, missing))
            names = list(learned)
        else:
            names = _trained_adapters(folder, agents)
        places = [folder / name for name in dict.fromkeys(names)]
    for place in places:
        if os.path.isfile(place / CRITIC_FILE):
            raise ConfigError(
                f"the adapter '{place}' is a critic, which scores replies and writes none; "
                f"expected an adapter of agents, such as {AGENT_ADAPTERS[0]}. To use a critic: "
                f"--critic learned --critic-model {section.adapters}"
            )
        read_metadata(place).expect_format(place, section.prompt_format)


def _saved_adapters(folder: Path) -> list[str]:
    files = folder.glob("*/adapter_config.json") if os.path.isdir(folder) else ()
    known = sorted(path.parent.name for path in files)
    if not known:
        raise ConfigError(
            f"no adapters in '{folder}': expected RUN/adapters of a training run, the folder of "
            f"one adapter, or the name of one in this package ({', '.join(AGENT_ADAPTERS)})"
        )
    return known


def _lacking(folder: Path, known: Sequence[str], missing: Sequence[str]) -> str:
    return f"'{folder}' has {', '.join(known)}, but not {', '.join(missing)}"


def _trained_adapters(folder: Path, agents: int) -> list[str]:
    known = _saved_adapters(folder)
    try:  # [train] adapters of the run that made the folder
        document = json.loads((folder.parent / "config.json").read_text(encoding="utf-8"))
        groups = document["config"]["train"].get("adapters")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        groups = None  # the folder was copied: each agent uses the adapter of its own name
    names = agent_names(agents)
    if groups == "shared":
        return known[:1] * agents
    if isinstance(groups, dict):
        by_agent = {agent: name for name, members in groups.items() for agent in members}
        names = [by_agent.get(name, name) for name in names]
    missing = [name for name in names if name not in known]
    if missing:
        raise ConfigError(_lacking(folder, known, missing))
    return names


def _endpoint(section: ModelSection) -> OpenAIModel:
    from swarm_ui.nodes import ChatOptions

    options = ChatOptions(
        vision=section.vision,
        prompt_format=section.prompt_format or "json",
        prompt_tokens=section.prompt_tokens,
        token_field=section.token_field,
        send_seed=section.send_seed,
    )
    return endpoint_client(section, section.name, section.url or None, options)


def endpoint_client(
    section: ModelSection, name: str, url: str | None, options: ChatOptions
) -> OpenAIModel:
    """A model at an endpoint, with the key and within the limits of the section."""
    from swarm_ui.budget import Budget
    from swarm_ui.nodes import OpenAIModel, RateLimits

    return OpenAIModel(
        name,
        url,
        api_key_env=section.key_env,
        limits=RateLimits(requests=section.rate_limit, concurrency=section.concurrency),
        timeout=section.timeout,
        budget=Budget(section.max_calls, section.max_tokens_total),
        options=options,
    )


def _scripted(path: Path) -> Any:
    """Replies from a text file, one on each line, repeated; or those recorded in a trace file."""
    from itertools import cycle

    from swarm_ui.nodes.models.scripted import ScriptedModel
    from swarm_ui.trace.jsonl import read_jsonl

    if path.suffix == ".jsonl":
        return ScriptedModel.from_trace(read_jsonl(path))
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the script '{path}': {error}") from error
    if not lines:
        raise ConfigError(f"the script '{path}' is empty")
    return ScriptedModel(cycle(lines), name=f"script:{path.name}")
