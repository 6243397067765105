"""Do a task by hand on a web page, and record it as an episode.

    episode = await play_in_browser(PhoneEnvironment(screenshots=True), "contacts-add", 7)

Or ``swarm-ui play phone contacts-add``.
"""

from __future__ import annotations

from swarm_ui.environments.play.server import play_in_browser

__all__ = ["play_in_browser"]
