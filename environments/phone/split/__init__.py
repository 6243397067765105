"""Split facts: a phone whose apps are open side by side, one for each agent of a team.

    phone = SplitPhone(agents=6)
    screen = await phone.reset(task="split-phone-message", seed=7)

Only the app in which a task ends is operated. The values that it needs are on the screens of other
agents, so a message must carry them. Further agents hold similar, wrong values.
"""

from __future__ import annotations

from swarm_ui.environments.phone.split.scripted_agents import scripted_reply
from swarm_ui.environments.phone.split.split_assignment import SPLIT_APPS
from swarm_ui.environments.phone.split.split_phone import SplitPhone
from swarm_ui.environments.phone.split.split_templates import split_tasks

__all__ = ["SPLIT_APPS", "SplitPhone", "scripted_reply", "split_tasks"]
