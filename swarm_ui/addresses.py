"""Addresses without their secrets, for messages and logs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit, urlunsplit

_FRAGMENT = 8
"""Length of the shortest part of a secret that is recognised: a server may echo only a part."""
_HIDDEN = "(an address that is not shown)"


def is_address(url: str) -> bool:
    """Whether an address has the scheme ``http`` or ``https``, a host, and a port that is a number,
    if it has one."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def without_credentials(url: str) -> str:
    """An address that may be shown: no user, password, query or fragment.

    With an ``@`` behind the host, a password may contain the ``/``, ``?`` or ``#`` at which the
    host seems to end. Then only the scheme is shown.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are not those of an IPv6 host; its text may quote them
        return _HIDDEN
    if any("@" in part for part in parts[2:]):
        return f"{parts.scheme}://{_HIDDEN}"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def basic_credentials(url: str) -> str:
    """User and password of an address, as HTTP's basic authentication sends them."""
    parts = urlsplit(url)
    return b64encode(
        f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    ).decode()


def secrets_of(url: str) -> list[str]:
    """The password and the query of an address, in each form in which they are sent."""
    parts = urlsplit(url)
    credentials = basic_credentials(url) if parts.password else ""
    given = (parts.password or "", parts.query)
    return [secret for secret in (*given, *map(unquote, given), credentials) if secret]


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text with ``[secret]`` in place of each secret and of each long fragment of one."""
    for secret in sorted(filter(None, set(secrets)), key=len, reverse=True):
        text = text.replace(secret, "[secret]")
        fragments = {secret[k : k + _FRAGMENT] for k in range(len(secret) - _FRAGMENT + 1)}
        hits = [k for k in range(len(text)) if text[k : k + _FRAGMENT] in fragments]
        pieces, done = [], 0
        for k in hits:
            if k >= done:
                pieces += [text[done:k], "[secret]"]
            done = k + _FRAGMENT
        text = "".join([*pieces, text[done:]])
    return text
