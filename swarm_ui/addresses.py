"""Addresses without their secrets, for messages and logs."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

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
