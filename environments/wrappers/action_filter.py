"""A wrapper that refuses actions, such as payments, deletions, and apps that are not allowed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.environments.wrappers.action_rules import (
    DELETION,
    LEAVES,
    PAYMENT,
    Match,
    Rule,
    first_match,
    opens,
    presses,
)
from swarm_ui.environments.wrappers.wrapper import RefusalWrapper
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


class ActionFilter(RefusalWrapper):
    """Refuses actions by rules. A refused action does not reach the environment; the step is lost.

    The note of the step names the rule and the reason. Words match in any spelling (case,
    accents, look-alike letters, spacing, invisible characters). Names of allowed apps and sites
    must be exact, so a look-alike of an allowed name is not allowed. Clicks by pixels and Enter
    are judged by the elements that they would press. Only text can be judged: a picture of the
    word “Pay” without a text is not recognized.

    Args:
        env: the environment.
        deny: the rules for refused actions.
        apps: the only allowed apps, as ``Observation.app`` and icons name them (``*`` and ``?``
            as in file names). Home screens are always allowed. In another app, or on a screen
            without an app's name, the agent can only leave.
        sites: the only allowed hosts, with their subdomains. A URL is judged if it is current,
            on a link, or typed.
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
        """Why an action is refused on a screen, or an empty string."""
        match = first_match(self._deny, action, screen)
        for rule, why in (
            *([match] if match else ()),
            *self._other_apps(action, screen),
            *self._other_sites(action, screen),
        ):
            return f"refused by the rule '{rule}': {why}; nothing was done"
        return ""

    def _expert(self) -> Action:
        action = super()._expert()
        why = self.present and self.refusal(action, self.present)
        if why:
            raise ConfigError(f"{self.name}: this task cannot be done under the filter: {why}")
        return action

    def _grade(self, action: Action) -> float:
        assert isinstance(self.env, Graded)
        if self.present is not None and self.refusal(action, self.present):
            return 0.0
        return self.env.grade(action)

    def _other_apps(self, action: Action, screen: Observation) -> Iterator[Match]:
        if self._apps is None:
            return
        opened = opens(action, screen)
        if opened and not self._allowed(opened):
            yield "apps", f"“{opened}” is not an allowed app"
        if action.action_type in LEAVES or self._allowed(screen.app):
            return
        where = f"“{screen.app}” is in front" if screen.app else "the screen names no app"
        yield "apps", f"{where}, and is not an allowed app; go back or home"

    def _allowed(self, app: str) -> bool:
        return any(fnmatchcase(_exact(app), allowed) for allowed in self._apps or ())

    def _other_sites(self, action: Action, screen: Observation) -> Iterator[Match]:
        if self._sites is None:
            return
        for front in (screen.app, _address_field(screen)):
            host = _address(front) if "://" in front else None
            if host is not None and action.action_type not in LEAVES and not self._visits(host):
                yield "sites", f"“{front}” is in front, and is not an allowed site; go back"
        element = screen.element(action.index)
        texts = [action.text or "", action.app_name or ""]
        if element is not None and (element.role == "link" or presses(action)):
            texts += [element.text, element.description, element.value or ""]
        for text in texts:
            host = _address(text)
            if host is not None and not self._visits(host):
                yield (
                    "sites",
                    f"“{text}” leads to {host or 'no host'}, which is not an allowed site",
                )

    def _visits(self, host: str) -> bool:
        return any(host == site or host.endswith(f".{site}") for site in self._sites or ())


def _exact(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


def _site(site: str) -> str:
    host = _address(site if "://" in site else f"https://{site}")
    if not host:
        raise ConfigError(
            f"ActionFilter: {site!r} is not a host; expected one such as 'example.org'"
        )
    return host


def _address_field(screen: Observation) -> str:
    """The URL in the address field of a browser; empty without one. In a browser the app's name is
    the title of the page, which the page can choose."""
    fields = (e.value for e in screen.elements if e.role == "field" and e.label == "Address")
    return next(fields, None) or ""


def _address(text: str) -> str | None:
    """The host of an address; ``None`` if the text is not an address, empty if it has no host.

    The text is parsed as browsers do it. An e-mail address does not count.
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
