"""Sphinx roles of the docstrings as links of the site, where there is a page for them."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([\w.]+)`")
_LITERAL = re.compile(r"``([^`]+)``")


class Roles(griffe.Extension):
    """Rewrites each docstring once, before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return

        def link(match: re.Match[str]) -> str:
            short, target = match.groups()
            shown = target.rpartition(".")[2] if short else target
            known = target if target.startswith("swarm_ui.") else _resolved(obj, target)
            return f'<autoref optional identifier="{known}"><code>{shown}</code></autoref>'

        text = _ROLE.sub(link, obj.docstring.value)
        obj.docstring.value = _LITERAL.sub(r"`\1`", text)


def _resolved(obj: griffe.Object, name: str) -> str:
    """The full name of what a docstring calls by its short one."""
    for scope in (obj, obj.parent):
        if scope is not None and name.split(".")[0] in scope.members:
            return f"{scope.path}.{name}"
    return f"{obj.module.path}.{name}"
