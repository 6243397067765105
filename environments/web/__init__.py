"""Any web site in a real Chromium that reaches the allowed hosts and no other."""

from __future__ import annotations

from swarm_ui.environments.web.browser import (
    BROWSER_VARIABLE,
    INSTALL_HINT,
    ScriptError,
    find_browser,
)
from swarm_ui.environments.web.environment import WEB_ACTIONS, WebEnvironment, WebView
from swarm_ui.environments.web.hosts import AllowedHosts
from swarm_ui.environments.web.session import WebBrowser
from swarm_ui.environments.web.task import Reward, Visit, WebTask

__all__ = [
    "BROWSER_VARIABLE",
    "INSTALL_HINT",
    "WEB_ACTIONS",
    "AllowedHosts",
    "Reward",
    "ScriptError",
    "Visit",
    "WebBrowser",
    "WebEnvironment",
    "WebTask",
    "WebView",
    "find_browser",
]
