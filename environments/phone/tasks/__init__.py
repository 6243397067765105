"""The task templates of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.tasks import (
    camera_browser,
    files_gallery,
    multi_app,
    recorder_maps,
    records,
    settings,
    system_ui,
    twins,
)
from swarm_ui.environments.phone.tasks.template import Template

_CORE = (settings, records)
_EXTENDED = (system_ui, files_gallery, camera_browser, multi_app, recorder_maps)
CORE: Mapping[str, Template] = {
    template.name: template for module in _CORE for template in module.TEMPLATES
}
"""The templates of the published study, on the core device. They never change."""
EXTENDED: Mapping[str, Template] = {
    template.name: template for module in _EXTENDED for template in module.TEMPLATES
}
"""Templates on a full device, for a harder study."""
TWINS: Mapping[str, Template] = {template.name: template for template in twins.TEMPLATES}
"""The tasks that cannot be done once more, where the thing exists."""
TEMPLATES: Mapping[str, Template] = {**CORE, **EXTENDED, **TWINS}
