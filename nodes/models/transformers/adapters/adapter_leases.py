"""Version numbers of adapters, and which versions are leased."""

from __future__ import annotations

import re
from collections import Counter

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.leases import give_up

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class AdapterLeases:
    """The current version of each adapter, and the leases of all versions.

    It holds no weights. A name never gets the same number twice, even if the adapter was unloaded
    in between.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """Current number by name."""
        self._highest: dict[str, int] = {}
        self._leases: Counter[str] = Counter()

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def check_new(self, name: str) -> None:
        """Check the name of a new adapter, which becomes part of versions, file names and module
        names. Raises ``ConfigError`` if it exists or has characters that are not allowed."""
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"an adapter cannot be named {name!r}; use letters, digits, '_' and '-', "
                "and begin with a letter"
            )
        if name in self:
            raise ConfigError(f"adapter '{name}' exists already; choose another name")

    def next(self, name: str) -> int:
        """The number of the next version of a name."""
        return self._highest.get(name, -1) + 1

    def set(self, name: str, number: int) -> str:
        """Set the number of a name; return the version."""
        self.numbers[name] = number
        self._highest[name] = max(number, self._highest.get(name, -1))
        return self.current(name)

    def current(self, name: str) -> str:
        """The current version of a name, such as ``"agent_2@7"``."""
        return f"{name}@{self.numbers[name]}"

    def answers(self, version: str) -> bool:
        """Whether a version can answer requests: it is current, or leased."""
        return self.leased(version) or version in map(self.current, self.numbers)

    def lease(self, adapter: str) -> str:
        """Lease the version to which ``"agent_2"`` or ``"agent_2@7"`` refers now. Raises
        ``ModelError`` if there is no such adapter or version."""
        version = self.current(adapter) if adapter in self else adapter
        if not self.answers(version):
            raise ModelError(f"no adapter '{adapter}'; this model has: {self.listing()}")
        self._leases[version] += 1
        return version

    def leased(self, version: str) -> bool:
        return self._leases[version] > 0

    def release(self, version: str) -> bool:
        """Give up one lease; return whether it was the last one. Raises ``ModelError`` if the
        version is not leased."""
        return give_up(self._leases, version)

    def listing(self) -> str:
        """A list of all versions, for error messages."""
        current = [self.current(name) for name in self.numbers]
        older = [f"{version} (leased)" for version in +self._leases if version not in current]
        return ", ".join([*current, *older]) or "none"


def parsed_version(version: str) -> tuple[str, int]:
    """The name and the number in a version such as ``agent_2@7``. Raises ``ConfigError`` if the
    text is not a version."""
    name, _, number = version.rpartition("@")
    if not name or not number.isdecimal():
        raise ConfigError(f"expected a version such as 'agent_2@7', got '{version}'")
    return name, int(number)
