"""The task templates of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.tasks import (
    across,
    errands,
    lists,
    people,
    pictures,
    storage,
    system,
    system_ui,
    times,
    unseen,
    unseen_full,
)
from swarm_ui.environments.phone.tasks.template import Template

CORE: Mapping[str, Template] = {
    template.name: template
    for part in (system, people, times, lists, across, unseen)
    for template in part.TEMPLATES
}
"""The templates of the published study, on the plain phone. They never change."""
EXTENDED: Mapping[str, Template] = {
    template.name: template
    for part in (system_ui, storage, pictures, errands, unseen_full)
    for template in part.TEMPLATES
}
"""Templates on a whole phone, for a harder study."""
TEMPLATES: Mapping[str, Template] = {**CORE, **EXTENDED}
