"""Do a task by hand, in the terminal or in a browser, and record it as an episode.

    episode = await play_in_terminal(PhoneEnvironment(), "contacts-add", 7, path="mine.jsonl")
    episode = await play_in_browser(PhoneEnvironment(screenshots=True), "contacts-add", 7)

Or ``swarm-ui play phone contacts-add --browser``.
"""

from __future__ import annotations

from swarm_ui.environments.play.in_browser import play_in_browser
from swarm_ui.environments.play.terminal import play_in_terminal

__all__ = ["play_in_browser", "play_in_terminal"]
