"""Models of the Hugging Face Hub by name, with a quick error where there is no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra, brief

_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_SECONDS = 10.0


def hub_folder(name: str) -> Path:
    """Download a model, or its missing files; return its folder in the hub's own cache.

    One request is made first, so that a missing network is reported after seconds: transformers
    would retry for minutes. A model in the hub's cache needs no network.

    Args:
        name: ``org/name``.

    Raises:
        MissingExtra: ``huggingface_hub`` is not installed.
        ConfigError: the hub has no such model, refuses access to it, or does not answer.
    """
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingExtra("train", "a model of the Hugging Face Hub", "huggingface_hub") from error
    try:
        hub.HfApi().model_info(name, timeout=_SECONDS)
    except errors.GatedRepoError as error:
        raise ConfigError(
            f"the Hugging Face Hub gives '{name}' only to those who accepted its terms; accept "
            "them on its page, and log in with: hf auth login"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigError(
            f"no model '{name}': there is no such folder, and the Hugging Face Hub has no public "
            "model of this name (for a private one: hf auth login)"
        ) from error
    except Exception as error:  # no network: the hub's client passes on errors of its transport
        known = _cached(hub, name)
        if known is None:
            raise ConfigError(
                f"no model '{name}': there is no such folder, it is not in the cache of the "
                f"Hugging Face Hub, and the hub does not answer ({type(error).__name__})"
            ) from error
        return known
    try:
        return Path(hub.snapshot_download(name, allow_patterns=list(_FILES)))
    except Exception as error:  # as above, and a full disk
        raise ConfigError(
            f"cannot download '{name}' from the Hugging Face Hub: {type(error).__name__}: "
            f"{' '.join(brief(error).split())}; run this again, finished files are kept"
        ) from error


def _cached(hub: Any, name: str) -> Path | None:
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=list(_FILES),
                                            local_files_only=True))  # fmt: skip
    except Exception:  # it is not in the cache, for any reason
        return None
    return folder if (folder / "config.json").is_file() else None
