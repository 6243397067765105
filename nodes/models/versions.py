"""Versions of adapters: which one answers under a name, and which ones runs still use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from swarm_ui.errors import ConfigError, ModelError

Held = TypeVar("Held")


class VersionBook(Generic[Held]):
    """The versions of a model's adapters, and what each of them holds.

    A version such as ``"agent_2@7"`` never changes. It stays while it is the current one of its
    name or a run leases it. A name never gets a number twice.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The number of the current version, by name."""
        self._next = Counter[str]()
        self._held: dict[str, Held] = {}
        self._leases = Counter[str]()

    def __contains__(self, version: object) -> bool:
        return version in self._held

    def __iter__(self) -> Iterator[str]:
        """The versions that can answer: current and leased ones."""
        return iter(list(self._held))

    def __getitem__(self, version: str) -> Held:
        """What a version holds. Raises ``ModelError`` if there is no such version."""
        if version not in self._held:
            known = ", ".join(self._held) or "none"
            raise ModelError(f"no adapter '{version}'; this model has: {known}")
        return self._held[version]

    def publish(self, name: str, held: Held, number: int | None = None) -> str:
        """Make a version, which holds this, the current one of its name; return it. ``number``:
        ``None`` is the next one, or the current one if it holds the same. Raises ``ConfigError`` if
        the number is that of a leased version that holds something else."""
        old = self.numbers.get(name)
        if number is None:
            number = self._next[name]
            if old is not None and self._held[f"{name}@{old}"] == held:
                number = old
        version = f"{name}@{number}"
        if self._held.get(version, held) != held and self._leases[version]:
            raise ConfigError(
                f"{version} exists already, and runs still use its other weights; load it when "
                "these runs have ended, or under the next number"
            )
        self.numbers[name], self._held[version] = number, held
        self._next[name] = max(number + 1, self._next[name])
        if old is not None:
            self._drop_unneeded(f"{name}@{old}")
        return version

    def lease(self, adapter: str) -> str:
        """Lease the version to which ``"agent_2"`` or ``"agent_2@7"`` refers now. It stays until it
        was released as often as it was leased. Raises ``ModelError`` if there is none."""
        version = f"{adapter}@{self.numbers[adapter]}" if adapter in self.numbers else adapter
        _ = self[version]
        self._leases[version] += 1
        return version

    def leased(self, version: str) -> bool:
        """Whether a run uses a version."""
        return self._leases[version] > 0

    def release(self, version: str) -> None:
        """Give up one lease. Raises ``ModelError`` if the version is not leased."""
        if not self._leases[version]:
            raise ModelError(
                f"'{version}' is not leased; release what lease() returned, and only once"
            )
        self._leases[version] -= 1
        self._drop_unneeded(version)

    def _drop_unneeded(self, version: str) -> None:
        name, number = parsed_version(version)
        if not self._leases[version] and self.numbers.get(name) != number:
            del self._held[version]


def parsed_version(version: str) -> tuple[str, int]:
    """The name and the number in a version such as ``"agent_2@7"``. Raises ``ConfigError`` if the
    text is not a version."""
    name, _, number = version.rpartition("@")
    if not name or not number.isdecimal():
        raise ConfigError(f"expected a version such as 'agent_2@7', got '{version}'")
    return name, int(number)


def not_sent(what: str) -> ConfigError:
    """The error for a model whose weights are in this process."""
    return ConfigError(
        f"{what} runs in this process; its weights are neither copied nor sent to others. For a "
        "second one, load it again. For workers, hold it in an actor that all workers ask: "
        "hold_model(factory) of swarm_ui.nodes"
    )
