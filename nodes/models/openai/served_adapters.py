"""The served names of adapters, and which of them are in use.

A version of an adapter is called ``agent_2@7`` in this library and in traces. A server calls it
``agent_2-v7``: a served name is part of addresses and of file names. :func:`served_name` and
:func:`adapter_version` are the only functions that convert one to the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from swarm_ui.errors import ModelError

_VERSION = re.compile(r"(.+)@(0|[1-9][0-9]*)")
_SERVED = re.compile(r"(.+)-v(0|[1-9][0-9]*)")


def served_name(version: str) -> str:
    """The name of a version on a server: ``agent_2-v7`` for ``agent_2@7``. A name without a version
    is returned unchanged."""
    found = _VERSION.fullmatch(version)
    return version if found is None else f"{found[1]}-v{found[2]}"


def adapter_version(served: str) -> str:
    """The version with this name on a server: ``agent_2@7`` for ``agent_2-v7``, the inverse of
    :func:`served_name`. A name without a version is returned unchanged."""
    found = _SERVED.fullmatch(served)
    return served if found is None else f"{found[1]}@{found[2]}"


class ServedAdapters:
    """Adapters on a server.

    ``base`` is the served name of the base model. ``names`` gives the served name or the version
    of each adapter; ``None``: adapters are served under their own names. It is read at every
    call, so that new versions take effect."""

    def __init__(self, base: str, names: Mapping[str, str] | None, where: str) -> None:
        self.names = names
        self._base, self._where = base, where
        self._leases: Counter[str] = Counter()

    @property
    def leased(self) -> frozenset[str]:
        """Served names that runs are using."""
        return frozenset(self._leases)

    def find(self, adapter: str | None) -> str:
        """The served name of an adapter or of the base model; a served name is returned unchanged.
        Raises ``ModelError`` if there is no such adapter."""
        if adapter is None:
            return self._base
        if self.names is None or adapter in self._leases:
            return adapter
        if adapter in self.names or adapter in self.names.values():
            return self.names.get(adapter, adapter)
        known = ", ".join(self.names) or "none"
        raise ModelError(
            f"{self._where}: expected one of the adapters: {known}; got '{adapter}'. "
            "Load it on the server and add its served name to adapter_names"
        )

    def lease(self, adapter: str) -> str:
        """The current served name of an adapter. It stays loaded until :meth:`release`."""
        served = self.find(adapter)
        if served != adapter and self.names is not None and served in self.names:
            raise ModelError(
                f"{self._where}: adapter_names maps '{adapter}' to the served name '{served}', "
                f"which is itself an adapter in adapter_names. Rename one of them"
            )
        self._leases[served] += 1
        return served

    def release(self, version: str) -> None:
        """Give up one lease."""
        if version not in self._leases:
            held = ", ".join(self._leases) or "none"
            raise ModelError(
                f"{self._where}: expected one of the leased versions: {held}; got '{version}'"
            )
        self._leases[version] -= 1
        if not self._leases[version]:
            del self._leases[version]
