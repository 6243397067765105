"""Opens the model that answers for the agents."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.adapter_metadata import CRITIC_FILE, read_metadata
from swarm_ui.addresses import without_credentials
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.model_settings import Agent, AnyModel, Client, Code, Endpoint, Language
from swarm_ui.experiment.plugins import make, told
from swarm_ui.experiment.teams import agent_names
from swarm_ui.model import ChatModel, close_model
from swarm_ui.nodes.models.pretrained.catalogue import AGENT_ADAPTERS, adapter_folder
from swarm_ui.nodes.models.tiny_agent.shipped_agents import agent_folder

if TYPE_CHECKING:
    from swarm_ui.nodes import ChatOptions, OpenAIModel

_SINGLE = "team"
"""Name of the adapter if ``model.adapters`` is the folder of one, which all agents use."""
_YOUNG = 20_000
"""Number of new objects after which the garbage collector runs; Python's default is 700. The traces
of a batch of episodes are hundreds of thousands of objects, and almost all are freed without the
collector."""


def describe_model(model: AnyModel) -> str:
    """The name of the model, and the address of a server that acts, without credentials."""
    if isinstance(model, Code) and ":" not in model.name:
        return told("models", model.name)
    server = model if isinstance(model, Endpoint) else getattr(model, "actor", None)
    if server is None:
        return model.name
    return f"{model.name} at {without_credentials(server.url or os.environ['OPENAI_BASE_URL'])}"


@asynccontextmanager
async def open_model(section: AnyModel, loaded: Any = None) -> AsyncIterator[ChatModel]:
    """Open the model; it is closed when the block is left.

    ``loaded``: the result of an earlier :func:`load_in_process`. Raises ``ConfigError`` if it
    cannot be loaded, and ``ModelError`` if the endpoint does not answer or serve it."""
    if loaded is not None:
        model = loaded
    elif isinstance(section, Endpoint):
        model = endpoint_model(section)
        await model.check()
    else:
        model = made_model(section)
    try:
        yield model
    finally:
        await close_model(model)


def made_model(section: AnyModel) -> Any:
    """A model that is not at an endpoint. Raises ``ConfigError`` if it cannot be made."""
    if isinstance(section, Code):
        return scripted(section.script) if section.script else make("models", section.name)
    assert isinstance(section, Agent | Language)
    return load_in_process(section)


@cache
def model_of_process(section: Agent | Language) -> Any:
    """:func:`load_in_process`; later calls in the same process return the same model."""
    return load_in_process(section)


def load_in_process(section: Agent | Language, learned: Sequence[str] = ()) -> Any:
    """A model of this process, with its adapters.

    ``learned``: adapters that are to be trained. If ``section.adapters`` is the folder of one
    adapter, each of them starts as a copy of it. Raises ``ConfigError`` if it cannot be loaded."""
    try:
        with long_lived():
            silence_transformers()
            from swarm_ui import nodes

            kind: Any = nodes.LocalModel if isinstance(section, Agent) else nodes.CausalModel
            if isinstance(section, Language) and section.vision:
                kind = nodes.VisionModel
        if isinstance(section, Language):
            model: Any = kind.named(
                section.name,
                device=section.device,
                prompt_format=section.prompt_format,
                prompt_tokens=section.prompt_tokens,
                constrained=section.constrained,
            )
        else:
            import torch

            torch.set_num_threads(1)  # small matrices gain nothing from more threads
            model = kind.load(agent_folder(section.name))
    except ImportError as error:
        raise MissingExtra("train", "a model in this process", error.name or "torch") from error
    folder = adapter_folder(section.adapters)
    if section.adapters and _is_adapter(folder):
        for name in learned or (_SINGLE,):
            model.load_adapter(folder, name)
    elif section.adapters:
        model.load_adapters(folder)
    return model


def silence_transformers() -> None:
    """Hide the progress bars and the FutureWarnings of transformers."""
    import transformers

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\..*")


@contextmanager
def long_lived() -> Iterator[None]:
    """A context for imports and other work whose objects live until the process ends.

    PyTorch and transformers create a million objects. The garbage collector would examine them
    again and again, which took a tenth of the CPU time of rollouts. Objects that exist when the
    context ends are exempt from garbage collection, and the collector runs less often from then on.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        young, *older = gc.get_threshold()
        gc.set_threshold(max(young, _YOUNG), *older)
        if enabled:
            gc.enable()


def adapter_names(section: AnyModel, agents: int) -> list[str | None]:
    """The name of each agent's adapter; ``None`` for agents that use the base model."""
    if not section.adapters:
        return [None] * agents
    if isinstance(section, Endpoint):  # it serves an adapter under each agent's name
        return list(agent_names(agents))
    folder = adapter_folder(section.adapters)
    return [_SINGLE] * agents if _is_adapter(folder) else list(_adapters_in(folder, agents))


def _is_adapter(folder: Path) -> bool:
    """Whether a folder holds one adapter, and not several."""
    return os.path.isfile(folder / "adapter_config.json")


def check_adapters(section: Agent | Language, agents: int, learned: Sequence[str] = ()) -> None:
    """Raise ``ConfigError`` if the adapters of so many agents, or those that a training starts from
    (``learned``), are missing or are none of agents."""
    folder = adapter_folder(section.adapters)
    places = [folder]
    if not _is_adapter(folder):
        places = [folder / name for name in _adapters_in(folder, agents, learned)]
    for place in dict.fromkeys(places):
        if os.path.isfile(place / CRITIC_FILE):
            raise ConfigError(
                f"the adapter '{place}' is a critic, which scores replies and writes none; "
                f"expected an adapter of agents, such as {next(iter(AGENT_ADAPTERS))}. To use a "
                f"critic: critic.kind=learned critic.folder={section.adapters}"
            )
        read_metadata(place).expect_format(place, getattr(section, "prompt_format", ""))


def _adapters_in(folder: Path, agents: int, learned: Sequence[str] = ()) -> list[str]:
    """The adapter of each agent, or those that are learned, in a folder of several."""
    files = folder.glob("*/adapter_config.json") if os.path.isdir(folder) else ()
    known = sorted(path.parent.name for path in files)
    if not known:
        raise ConfigError(
            f"no adapters in '{folder}': expected RUN/adapters of a training run, the folder of "
            f"one adapter, or the name of one in this package ({', '.join(AGENT_ADAPTERS)})"
        )
    names = list(learned) or agent_names(agents)
    if missing := [name for name in names if name not in known]:
        raise ConfigError(f"'{folder}' has {', '.join(known)}, but not {', '.join(missing)}")
    return names


def endpoint_model(section: Endpoint) -> OpenAIModel:
    """A model at an endpoint. Nothing is asked yet."""
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
    section: Client, name: str, url: str | None, options: ChatOptions
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


def scripted(path: Path) -> Any:
    """Replies from a text file, one on each line, repeated."""
    from itertools import cycle

    from swarm_ui.nodes.models.scripted import ScriptedModel

    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the script '{path}': {error}") from error
    if not lines:
        raise ConfigError(f"the script '{path}' is empty")
    return ScriptedModel(cycle(lines), name=f"script:{path.name}")
