"""The environments that an experiment can name, with their specifications."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager

from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments import (
    androidworld,
    coordination,
    invented,
    miniwob,
    phone,
    phone_split,
    recorded,
    web,
)
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening
from swarm_ui.experiment.plugins.entry_points import plugin, unknown_name
from swarm_ui.experiment.user_code import user_environment

ENVIRONMENTS: dict[str, EnvironmentSpec] = {
    spec.name: spec
    for spec in (phone.SPEC, invented.SPEC, phone_split.SPEC, miniwob.SPEC, androidworld.EMULATOR,
                 androidworld.HANDSET, recorded.MIND2WEB, recorded.AUTOWEBBENCH, web.SPEC,
                 coordination.SPEC)
}  # fmt: skip


@asynccontextmanager
async def _open_code(section: EnvironmentSection) -> Opening:
    yield OpenEnvironment(lambda: user_environment(section.name))


def spec_of(name: str) -> EnvironmentSpec:
    """The environment of that name; any other name is a plug-in, or ``module:factory``."""
    known = ENVIRONMENTS.get(name)
    if known is not None:
        return known
    label = str(plugin("environments", name) or name)
    return EnvironmentSpec(name=name, label=label, open=_open_code, by_user=True)


def environment_findings(
    section: EnvironmentSection, splits: Sequence[str] = ()
) -> Iterator[Finding]:
    """Mistakes in the choice of an environment.

    ``splits``: the splits to check; default: the section's own split.
    """
    added = plugin("environments", section.name)
    if section.name not in ENVIRONMENTS and ":" not in section.name and added is None:
        problem = unknown_name("environments", section.name, ENVIRONMENTS, "module:factory")
        yield ("environment", "name"), problem
        return
    yield from spec_of(section.name).all_findings(section, splits)
