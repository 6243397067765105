"""Which model answers, told by its name."""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from swarm_ui.cli.config import ModelSection
from swarm_ui.cli.quiet import hush_transformers
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.model import ChatModel

SERVED = "served"
"""As ``model.adapters``: the endpoint serves an adapter under each agent's name."""


def kind_of(section: ModelSection) -> str:
    """``base``, ``endpoint``, ``script``, ``code``, ``agent`` (a base agent's folder) or ``local``.

    Raises:
        ConfigError: nothing that is known has this name.
    """
    name = section.name
    if section.url:
        return "endpoint"
    if name == "base":
        return "base"
    if name.startswith("script:"):
        return "script"
    folder = Path(name)
    if (folder / "words.json").is_file():
        return "agent"
    if (folder / "config.json").is_file():
        return "local"
    if os.environ.get("OPENAI_BASE_URL"):
        return "endpoint"
    if ":" in name:
        return "code"
    raise ConfigError(
        f"no model '{name}': expected base, the folder of a model, script:FILE, module:factory, "
        "or with --url the name that an endpoint serves"
    )


def described(section: ModelSection) -> str:
    """What answers, in words, without a credential."""
    kind = kind_of(section)
    if kind == "endpoint":
        from swarm_ui.nodes.openai_wire import without_credentials

        where = section.url or os.environ.get("OPENAI_BASE_URL", "")
        return f"{section.name} at {without_credentials(where)}"
    words = {"base": "the base agent that ships (in this process)", "script": section.name}
    return words.get(kind, f"{section.name} (in this process)")


@asynccontextmanager
async def opened(section: ModelSection) -> AsyncIterator[ChatModel]:
    """The model, ready to answer; closed at the end.

    Raises:
        ConfigError: there is no such model, or it cannot be loaded.
        ModelError: the endpoint does not answer, or does not serve it.
    """
    kind = kind_of(section)
    model: Any
    if kind == "endpoint":
        model = _endpoint(section)
        await model.check()
    elif kind == "script":
        model = _scripted(Path(section.name.partition(":")[2]))
    elif kind == "code":
        model = made(section.name, ChatModel)
    else:
        model = loaded(section)
    try:
        yield model
    finally:
        await model.close()


def loaded(section: ModelSection) -> Any:
    """A model in this process, with its adapters."""
    try:
        import torch

        from swarm_ui.nodes.causal import CausalModel
        from swarm_ui.nodes.local import BASE_AGENT, LocalModel
    except ImportError as error:
        module = error.name or "torch"
        raise MissingExtra("train", "a model in this process", module) from error
    hush_transformers()
    kind = kind_of(section)
    if kind == "local":
        model: Any = CausalModel.from_pretrained(Path(section.name), device=section.device)
    else:
        torch.set_num_threads(1)  # small matrices: more threads only fight each other
        model = LocalModel.load(BASE_AGENT if kind == "base" else Path(section.name))
    if section.adapters:
        folder = Path(section.adapters)
        if not folder.is_dir():
            raise ConfigError(f"[model] adapters: no folder '{folder}'")
        model.load_adapters(folder)
    return model


def adapter_names(section: ModelSection, model: ChatModel, agents: int) -> list[str | None]:
    """The adapter each agent speaks through: that of its own name, where there is one."""
    names = [f"agent_{k}" for k in range(agents)]
    if not section.adapters:
        return [None] * agents
    if section.adapters == SERVED:
        return list(names)
    known = getattr(model, "adapters", ())
    missing = [name for name in names if name not in known]
    if missing:
        raise ConfigError(
            f"[model] adapters: '{section.adapters}' has {', '.join(known) or 'none'}, but not "
            f"{', '.join(missing)}"
        )
    return list(names)


def made(name: str, kind: type | None = None) -> Any:
    """What ``module:factory`` makes; modules of the present folder can be named.

    Raises:
        ConfigError: there is no such thing, or it makes something else.
    """
    import sys

    module, _, attribute = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot make '{name}': {error}") from error
    value = found()
    if kind is not None and not isinstance(value, kind):
        raise ConfigError(f"'{name}' makes a {type(value).__name__}, expected a {kind.__name__}")
    return value


def _endpoint(section: ModelSection) -> Any:
    from swarm_ui.nodes.openai_model import OpenAIModel

    if section.name == "base":
        raise ConfigError("--url needs --model NAME, the name that the endpoint serves")
    if section.adapters not in ("", SERVED):
        raise ConfigError(
            f"[model] adapters: an endpoint has its own; write '{SERVED}' to ask for one a "
            "name of an agent"
        )
    return OpenAIModel(
        section.name,
        section.url or None,
        api_key_env=section.key_env,
        max_calls=section.max_calls,
        max_tokens_total=section.max_tokens_total,
        rate_limit=section.rate_limit,
        concurrency=section.concurrency,
        timeout=section.timeout,
        vision=section.vision,
    )


def _scripted(path: Path) -> Any:
    """Replies from a text file, one a line, over and over; or as they were in a trace file."""
    from itertools import cycle

    from swarm_ui.nodes.scripted import ScriptedModel
    from swarm_ui.records import read_jsonl

    if path.suffix == ".jsonl":
        return ScriptedModel.from_trace(read_jsonl(path))
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the script '{path}': {error}") from error
    if not lines:
        raise ConfigError(f"the script '{path}' has no line")
    return ScriptedModel(cycle(lines), name=f"script:{path.name}")
