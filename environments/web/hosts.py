"""The hosts that a browser may reach; it refuses all others itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from swarm_ui.errors import ConfigError

_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_LOCAL = ("about", "data", "blob", "javascript")  # no connection is opened for these
_NO_DETOURS = (
    "--no-proxy-server",  # a proxy would look names up itself
    "--disable-quic",
    # WebRTC would send packets to addresses without looking them up.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class AllowedHosts:
    """The allowed hosts, each with its ports.

    >>> hosts = AllowedHosts(["http://127.0.0.1:8080/shop", "example.org", "*.example.net"])
    >>> hosts.allows("https://example.org/page"), hosts.allows("http://127.0.0.1:9090/")
    (True, False)
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """
        Args:
            entries: host names, addresses or URLs, with or without a port; without one, ports 80
                and 443. ``*.example.net``: every name below example.net, on every port. ``*``:
                every host.

        Raises:
            ConfigError: an entry has another form, or there is no entry.
        """
        given = tuple(entries)
        if isinstance(entries, str) or not given:
            raise ConfigError(f"allowed hosts: expected a list of hosts, got {entries!r}")
        rules = {rule for entry in given for rule in _rules(entry)}
        self._rules = sorted(rules, key=lambda rule: (not rule[1], *rule))
        self._all = ("*", 0) in rules

    def __str__(self) -> str:
        names = (f"{name}:{port}" if port else name for name, port in self._rules)
        return "every host" if self._all else ", ".join(names)

    def allows(self, url: str) -> bool:
        """Whether the browser may open a connection for a URL, or needs none."""
        try:
            scheme, host, port = origin(url)
        except ConfigError:
            return False
        if scheme in _LOCAL:
            return True
        return scheme in _PORTS and any(
            (host, port) == (name, allowed) if allowed else fnmatchcase(host, name)
            for name, allowed in self._rules
        )

    def flags(self) -> tuple[str, ...]:
        """Flags that make Chromium resolve only the allowed hosts.

        The flags set rules for host names and addresses in the network process, which loads pages,
        frames, workers, sockets and downloads.
        """
        if self._all:
            return ()
        rules = [
            f"MAP {name}:{port} {name}:{port}" if port else f"EXCLUDE {name}"
            for name, port in self._rules
        ]
        return (*_NO_DETOURS, f"--host-resolver-rules={', '.join([*rules, 'MAP * ~NOTFOUND'])}")


def _rules(entry: str) -> list[tuple[str, int]]:
    """The host and the ports of an entry; port 0: every port."""
    if entry == "*":
        return [("*", 0)]
    scheme, host, port = _parts(entry if "://" in entry else f"//{entry}")
    every = host.startswith("*.")
    if not _NAME.fullmatch(host) or scheme not in ("", *_PORTS) or (every and port):
        raise ConfigError(
            f"allowed hosts: {entry!r} is not a host: expected a name, an address, *.name (for "
            "every port, so without one) or a URL with http or https, such as 127.0.0.1:8080"
        )
    return [(host, one) for one in ((0,) if every else (port,) if port else (80, 443))]


def web_url(text: str) -> str:
    """Convert an address that a person typed to a URL; without a scheme, it gets ``http://``.

    Raises:
        ConfigError: it is not the address of a web page.
    """
    written = text.strip()
    url = written if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)", written) else f"http://{written}"
    scheme, host, _ = _parts(url)
    if scheme not in ("http", "https") or not host or re.search(r"\s", written):
        raise ConfigError(f"{text[:200]!r} is not the address of a web page")
    return url


Origin = tuple[str, str, int | None]
"""Scheme, host and port of a site."""


def origin(url: str) -> Origin:
    """The site of a URL, however its host and port are spelled.

    >>> origin("http://Shop.example/milk") == origin("http://shop.example:80/")
    True

    Raises:
        ConfigError: it is not a URL.
    """
    scheme, host, port = _parts(url)
    return scheme, host, port or _PORTS.get(scheme)


def _parts(url: str) -> Origin:
    try:
        parts = urlsplit(url.replace("\\", "/"))  # as browsers read it
        port = parts.port  # raises ValueError if it is no number
    except ValueError as error:
        raise ConfigError(f"{url[:200]!r} is not a URL: {error}") from error
    host = (parts.hostname or "").rstrip(".").lower()
    return parts.scheme, f"[{host}]" if ":" in host else host, port
