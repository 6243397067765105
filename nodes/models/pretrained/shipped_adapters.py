"""The adapters that this package contains, by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedAdapter:
    """A trained LoRA adapter in this package, in peft's format."""

    name: str
    base: str
    """Name of its model in :data:`~swarm_ui.nodes.models.pretrained.catalogue.PRETRAINED`."""
    title: str
    folder: Path
    critic: bool = False
    """Whether it scores the replies of agents, and writes none itself."""


SMOLLM2_PHONE = ShippedAdapter(
    name="smollm2-phone",
    base="smollm2",
    title="stage 1 on the simulated phone, invented devices and pages",
    folder=Path(__file__).parent / "smollm2_phone",
)
SMOLLM2_CRITIC = ShippedAdapter(
    name="smollm2-critic",
    base="smollm2",
    title="critic of replies on the simulated phone, invented devices and pages",
    folder=Path(__file__).parent / "smollm2_critic",
    critic=True,
)
SHIPPED_ADAPTERS: dict[str, ShippedAdapter] = {
    each.name: each for each in (SMOLLM2_PHONE, SMOLLM2_CRITIC)
}
"""Every adapter in this package, by name."""
AGENT_ADAPTERS = tuple(each.name for each in SHIPPED_ADAPTERS.values() if not each.critic)
CRITIC_ADAPTERS = tuple(each.name for each in SHIPPED_ADAPTERS.values() if each.critic)


def adapter_folder(name: str | Path) -> Path:
    """The folder of an adapter, by the name of a shipped one (:data:`SHIPPED_ADAPTERS`) or by its
    path. An existing folder takes precedence over a name. Whether the folder contains an adapter is
    not checked.
    """
    known = SHIPPED_ADAPTERS.get(str(name))
    return Path(name) if known is None or os.path.isdir(name) else known.folder
