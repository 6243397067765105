"""Metadata of an adapter's training, in a file next to its weights.

An adapter fits one base model, and answers in the prompt format it was trained with. Peft's own
``adapter_config.json`` has no prompt format, and only a path for the base model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from swarm_ui.errors import UNREADABLE, ConfigError, brief
from swarm_ui.files import write_atomic

METADATA_FILE = "swarm_ui.json"
"""Name of the file in the folder of an adapter, or of a model."""
CRITIC_FILE = "critic.json"
"""Name of the file in the folder of an adapter that is a critic."""
_SAMPLES = 1024
"""Values of each tensor that a fingerprint reads."""

_Text = Annotated[str, Meta(max_length=200)]


class AdapterMetadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about an adapter or a model. An empty text means that the fact is not known."""

    prompt_format: _Text = ""
    """Name of the format in which its prompts and replies are written, such as ``"compact"``."""
    base_model: _Text = ""
    """Name of the model that the adapter was trained on, for readers."""
    base_fingerprint: _Text = ""
    """:func:`fingerprint` of the weights that the adapter was trained on."""
    made_by: _Text = ""

    def expect_base(self, folder: Path, name: str, fingerprint: str) -> None:
        """Raise ``ConfigError`` if the adapter in ``folder`` was trained on other weights than
        those with this fingerprint; an empty one fits every adapter."""
        own = self.base_fingerprint
        if own and fingerprint and own != fingerprint:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model: it was trained on another "
                f"base, '{self.base_model or 'without a name'}' (weights {own[:12]}), and this is "
                f"'{name}' (weights {fingerprint[:12]}); load it with the model it was trained on"
            )

    def saved_with(self, name: str, fingerprint: str) -> AdapterMetadata:
        """The metadata of an adapter that this library saves; ``name`` and ``fingerprint`` are
        those of its base model."""
        return msgspec.structs.replace(
            self,
            base_model=name,
            base_fingerprint=fingerprint,
            made_by=self.made_by or "swarm-ui",
        )

    def expect_format(self, folder: Path, prompt_format: str) -> None:
        """Raise ``ConfigError`` if a format is given and the adapter was trained with another."""
        if self.prompt_format and prompt_format not in ("", self.prompt_format):
            raise ConfigError(
                f"the adapter in '{folder}' was trained with the prompt format "
                f"'{self.prompt_format}', and '{prompt_format}' was requested; leave the format "
                "out to use the adapter's own"
            )


def read_metadata(folder: Path) -> AdapterMetadata:
    """The metadata in a folder; all empty if there is no such file. Raises ``ConfigError`` if it
    cannot be read."""
    path = folder / METADATA_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=AdapterMetadata)
    except FileNotFoundError:
        return AdapterMetadata()
    except (OSError, *UNREADABLE) as error:
        raise ConfigError(f"'{path}' is not the metadata of an adapter: {brief(error)}") from error


def write_metadata(folder: Path, metadata: AdapterMetadata) -> None:
    """Write the metadata of the adapter in a folder. Raises ``OSError``."""
    text = msgspec.json.format(msgspec.json.encode(metadata), indent=1)
    write_atomic(folder / METADATA_FILE, text + b"\n")


def fingerprint(tensors: Iterable[Any]) -> str:
    """A short hash of a model's weights (torch tensors, without those of adapters): 32 hexadecimal
    digits; empty for quantised weights and weights that are not loaded.

    It reads the shape of every tensor and up to 1,024 evenly spaced values of it, rounded to
    bfloat16, so it is equal in float32 and bfloat16. Names and order of the tensors do not matter.
    """
    found = set()
    for tensor in tensors:
        if tensor.is_meta or not tensor.is_floating_point() or tensor.element_size() < 2:
            return ""
        flat = tensor.detach().reshape(-1)
        sample = flat[:: max(1, flat.numel() // _SAMPLES)][:_SAMPLES].bfloat16()
        # bfloat16 is the upper half of float32; torch itself is not imported here.
        values = (sample.float().cpu().numpy().view("<u4") >> 16).astype("<u2").tobytes()
        found.add(hashlib.sha256(str(tuple(tensor.shape)).encode() + values).digest())
    return hashlib.sha256(b"".join(sorted(found))).hexdigest()[:32]
