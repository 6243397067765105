"""The adapter of each agent of a team: its own, one for all, or one for each group."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph

AdapterGroups = Literal["per_node", "shared"] | dict[str, tuple[str, ...]]
"""``per_node``: an adapter for each agent. ``shared``: one for all. A mapping: one for each group,
by the adapter's name, such as ``{"readers": ("agent_0", "agent_1"), "writers": ("agent_2",)}``."""

SHARED = "team"
"""Name of the adapter that all agents share, unless they name one already."""


def check_groups(groups: AdapterGroups) -> str | None:
    """What the setting ``adapters`` must be, if it is wrong for any team; ``None``: it is right."""
    if isinstance(groups, str):
        known = ("per_node", "shared")
        return None if groups in known else f"one of {known} or groups of agents by adapter"
    if not isinstance(groups, Mapping) or not groups:
        return "'per_node', 'shared', or at least one group of agents by adapter"
    flat = [agent for members in groups.values() for agent in _members(members)]
    repeated = sorted({agent for agent in flat if flat.count(agent) > 1})
    if repeated:
        return f"groups with each agent in one only ({', '.join(repeated)}: in several)"
    empty = [name for name, members in groups.items() if not name or not _members(members)]
    return f"named groups of at least one agent ('{empty[0]}' is none)" if empty else None


def adapters_by_agent(graph: CollabGraph, groups: AdapterGroups = "per_node") -> dict[str, str]:
    """The adapter of each agent, in the graph's order.

    With ``per_node`` and ``shared``, if an agent of the graph already names an adapter that fits
    the setting, it is kept. Otherwise an adapter gets the name of its agent, and a shared one gets
    the name :data:`SHARED`.

    Raises:
        ConfigError: two agents name one adapter with ``per_node``, or the groups leave an agent
            out or name one that is not in the team.
    """
    wrong = check_groups(groups)
    if wrong is not None:
        raise ConfigError(f"team training: adapters must be {wrong}, got {groups!r}")
    agents = graph.agents
    own = {agent: getattr(graph.nodes[agent], "adapter", None) for agent in agents}
    if groups == "shared":
        named = set(own.values())
        return dict.fromkeys(agents, (named.pop() if len(named) == 1 else None) or SHARED)
    if isinstance(groups, str):
        found = {agent: own[agent] or agent for agent in agents}
        for name, count in Counter(found.values()).items():
            if count > 1:
                clashing = ", ".join(agent for agent in agents if found[agent] == name)
                raise ConfigError(
                    f"team training: {clashing} all use adapter '{name}', and adapters='per_node' "
                    "gives each agent its own; set adapters='shared', set groups, or give the "
                    "agents adapters of their own"
                )
        return found
    found = {agent: name for name, members in groups.items() for agent in members}
    missing = [agent for agent in agents if agent not in found]
    if missing:
        raise ConfigError(
            f"team training: no adapter given for {', '.join(missing)}; put each agent into a group"
        )
    unknown = [agent for agent in found if agent not in agents]
    if unknown:
        raise ConfigError(
            f"team training: adapters are given for {', '.join(unknown)}, but the team has "
            f"only {', '.join(agents)}"
        )
    return {agent: found[agent] for agent in agents}


def with_adapters(graph: CollabGraph, adapters: Mapping[str, str]) -> CollabGraph:
    """The team, in which each agent uses the adapter that is given for it.

    Agents that are not dataclasses with a field ``adapter`` are not changed: they are defined
    outside the library and choose their adapter themselves.
    """
    for agent, adapter in adapters.items():
        node = graph.nodes[agent]
        own = "adapter" in getattr(type(node), "__dataclass_fields__", {})
        if own and getattr(node, "adapter", None) != adapter:
            graph = graph.with_node(dataclasses.replace(node, adapter=adapter), name=agent)  # type: ignore[type-var]
    return graph


def _members(group: object) -> list[str]:
    """The names in a group; a string alone is not a list of names."""
    return [] if isinstance(group, str) or not isinstance(group, Sequence) else list(group)
