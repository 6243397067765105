"""A world in which some acts are impossible: only some apps and sites, no payment, no deletion."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.environments.wrappers.refusal import Refusing
from swarm_ui.environments.wrappers.rules import (
    DELETION,
    LEAVES,
    PAYMENT,
    Rule,
    first_match,
    opens,
    presses,
)
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation

HOME = ("home", "*launcher*")
"""Names of home screens, which every allow-list of apps includes."""
_SCHEME = re.compile(
    r"^(?:[a-z][a-z0-9+.-]*://|//|(?:javascript|data|blob|file|ftp|view-source|intent|chrome|"
    r"mailto|tel|sms):)",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"^(?:[^\s@/:?#]+\.[^\s@/:?#.\d][^\s@/:?#.]*\.?|\d+\.\d+\.\d+\.\d+)(?::\d+)?(?:[/?#]\S*)?$"
)
_DOTS = str.maketrans("\u3002\uff61\\", "../")


class ActionFilter(Refusing):
    """Refuses actions by rules: a refused one never reaches the world, and is a lost step.

    The note of the step names the rule and why it applies. Words are matched however they are
    written (case, accents, look-alike letters, spacing, invisible characters); names of allowed
    apps and sites must be exact, so a look-alike of an allowed name is not allowed. Pointing by
    pixels and Enter are judged by what they would hit. What cannot be seen cannot be judged: a
    picture of the word “Pay” without a text is not known to be a button for paying.

    Args:
        env: the world.
        deny: rules of what must not be done.
        apps: the only apps that may be used, as ``Observation.app`` and icons name them (``*`` and
            ``?`` as in file names); home screens always may. Where another app is in front, or
            none is named, one can only leave it.
        sites: the only hosts, with their subdomains, that may be visited, judged where a URL is in
            front, stands on a link, or is typed.
    """

    def __init__(
        self,
        env: Environment,
        *,
        deny: Sequence[Rule] = (PAYMENT, DELETION),
        apps: Sequence[str] | None = None,
        sites: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        self._deny = tuple(deny)
        self._apps = None if apps is None else tuple(_exact(app) for app in (*apps, *HOME))
        self._sites = None if sites is None else tuple(_site(site) for site in sites)

    async def objection(self, action: Action, screen: Observation) -> str:
        return self.refusal(action, screen)

    def refusal(self, action: Action, screen: Observation) -> str:
        """Why an action is refused on a screen; empty if it is not."""
        match = first_match(self._deny, action, screen)
        if match is not None:
            return f"refused by the rule '{match.rule}': {match.why}; nothing was done"
        for rule, why in (*self._other_apps(action, screen), *self._other_sites(action, screen)):
            return f"refused by the rule '{rule}': {why}; nothing was done"
        return ""

    def _expert(self) -> Action:
        action = super()._expert()
        why = self._screen and self.refusal(action, self._screen)
        if why:
            raise ConfigError(f"{self.name}: this task cannot be done under the filter: {why}")
        return action

    def _grade(self, action: Action) -> float:
        assert isinstance(self.env, Graded)
        if self._screen is not None and self.refusal(action, self._screen):
            return 0.0
        return self.env.grade(action)

    def _other_apps(self, action: Action, screen: Observation) -> Iterator[tuple[str, str]]:
        if self._apps is None:
            return
        opened = opens(action, screen)
        if opened and not self._allowed(opened):
            yield "apps", f"“{opened}” is none of the allowed apps"
        if action.action_type in LEAVES or self._allowed(screen.app):
            return
        where = f"“{screen.app}” is in front" if screen.app else "the screen names no app"
        yield "apps", f"{where}, and is none of the allowed apps; go back or home"

    def _allowed(self, app: str) -> bool:
        return any(fnmatchcase(_exact(app), allowed) for allowed in self._apps or ())

    def _other_sites(self, action: Action, screen: Observation) -> Iterator[tuple[str, str]]:
        if self._sites is None:
            return
        front = _address(screen.app) if "://" in screen.app else None
        if front is not None and action.action_type not in LEAVES and not self._visits(front):
            yield "sites", f"“{screen.app}” is in front, and is none of the allowed sites; go back"
        element = screen.element(action.index)
        texts = [action.text or "", action.app_name or ""]
        if element is not None and (element.role == "link" or presses(action)):
            texts += [element.text, element.description, element.value or ""]
        for text in texts:
            host = _address(text)
            if host is not None and not self._visits(host):
                yield "sites", f"“{text}” leads to {host or 'no host'}, none of the allowed sites"

    def _visits(self, host: str) -> bool:
        return any(host == site or host.endswith(f".{site}") for site in self._sites or ())


def _exact(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


def _site(site: str) -> str:
    host = _address(site if "://" in site else f"https://{site}")
    if not host:
        raise ConfigError(f"ActionFilter: {site!r} is no host; expected one such as 'example.org'")
    return host


def _address(text: str) -> str | None:
    """The host a text leads to if it is an address; empty: an address without a host.

    Read as browsers read addresses. An e-mail address is not one.
    """
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))
    text = unicodedata.normalize("NFKC", text).translate(_DOTS).strip()
    if text.startswith("//") or (not _SCHEME.match(text) and _HOST.match(text)):
        text = f"https://{text.lstrip('/')}"
    if not _SCHEME.match(text):
        return None
    try:
        host = (urlsplit(text).hostname or "").rstrip(".")
        return host.encode("idna").decode("ascii").casefold() if host else ""
    except ValueError:
        return ""
