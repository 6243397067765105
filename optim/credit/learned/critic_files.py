"""A trained critic on disk: a LoRA adapter in peft's format, and ``critic.json`` beside it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.model import ChoosingModel
from swarm_ui.optim.credit.learned.question import OPTIONS
from swarm_ui.optim.credit.learned.scaling import Scaling
from swarm_ui.prompts import format_named

CARD = CRITIC_FILE
CARD_VERSION = 2


class CriticCard(msgspec.Struct, frozen=True, kw_only=True):
    """The data needed to use a trained critic, and the origin of the critic."""

    critic_version: int = CARD_VERSION
    prompt_format: str = "compact"
    """Prompt format of the questions to the critic."""
    options: tuple[str, str] = OPTIONS
    scaling: Scaling = Scaling()
    """The calibration, fitted on validation episodes."""
    base_model: str = ""
    """Name of the model that the adapter was trained on."""
    replies: int = 0
    """Number of replies that the critic was trained on."""
    settings: dict[str, object] = {}
    """Settings of its training, as JSON values."""
    validation: dict[str, float | None] = {}
    """How well the critic judges the validation episodes."""


@runtime_checkable
class AdapterFiles(ChoosingModel, Protocol):
    """A choosing model whose adapters are on disk."""

    def save_adapters(self, folder: Path) -> object: ...

    def load_adapter(self, folder: Path, name: str) -> str: ...


def save_critic(model: AdapterFiles, adapter: str, card: CriticCard, folder: Path) -> None:
    """Write an adapter of the model as a critic. The folder is written atomically.

    Raises:
        ConfigError: the folder exists, or cannot be written.
    """
    if folder.exists():
        raise ConfigError(f"cannot write a critic to '{folder}': it exists; choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
            model.save_adapters(Path(beside))
            fresh = Path(beside) / adapter
            write_atomic(fresh / CARD, msgspec.json.format(msgspec.json.encode(card), indent=1))
            fresh.rename(folder)
    except OSError as error:
        raise ConfigError(f"cannot write the critic '{folder}': {error}") from error


def read_card(folder: Path) -> CriticCard:
    """The card of a critic.

    Raises:
        ConfigError: the folder does not hold a trained critic, or another version wrote it.
    """
    path = folder / CARD
    if not path.is_file():
        raise ConfigError(
            f"no critic in '{folder}': expected {CARD} beside an adapter, as swarm-ui critic "
            "writes it"
        )
    try:
        card = msgspec.json.decode(path.read_bytes(), type=CriticCard)
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(f"'{path}' is not the card of a critic: {error}") from error
    if card.critic_version != CARD_VERSION:
        raise ConfigError(
            f"the critic '{folder}' has version {card.critic_version}, this library reads "
            f"{CARD_VERSION}; open it with the swarm-ui that wrote it"
        )
    format_named(card.prompt_format)
    return card
