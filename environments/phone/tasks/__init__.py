"""The task templates of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.tasks import across, lists, people, system, times, unseen
from swarm_ui.environments.phone.tasks.template import Template

TEMPLATES: Mapping[str, Template] = {
    template.name: template
    for part in (system, people, times, lists, across, unseen)
    for template in part.TEMPLATES
}
