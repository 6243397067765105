"""Which adapter each agent of a team speaks with: one of its own, one for all, or one a group."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import Node

AdapterGroups = Literal["per_node", "shared"] | dict[str, tuple[str, ...]]
"""``per_node``: an adapter for each agent. ``shared``: one for all. A mapping: one for each group,
by the adapter's name, such as ``{"readers": ("agent_0", "agent_1"), "writers": ("agent_2",)}``."""

SHARED = "team"
"""Name of the adapter that all share, unless they name one already."""


def check_groups(groups: AdapterGroups) -> str | None:
    """What is wrong with a setting whatever the team is; ``None`` if nothing is."""
    if isinstance(groups, str):
        known = ("per_node", "shared")
        return None if groups in known else f"one of {known} or groups of agents by adapter"
    if not isinstance(groups, Mapping) or not groups:
        return "'per_node', 'shared', or at least one group of agents by adapter"
    flat = [agent for members in groups.values() for agent in _listed(members)]
    twice = sorted({agent for agent in flat if flat.count(agent) > 1})
    if twice:
        return f"groups with each agent in one only ({', '.join(twice)}: in several)"
    empty = [name for name, members in groups.items() if not name or not _listed(members)]
    return f"named groups of at least one agent ('{empty[0]}' is none)" if empty else None


def grouped(graph: CollabGraph, groups: AdapterGroups = "per_node") -> dict[str, str]:
    """The adapter of each agent, by the agent's name, in the graph's order.

    With ``per_node`` and ``shared`` the names that the graph's agents bear already are kept where
    they fit; else an adapter is called as its agent is, and a shared one :data:`SHARED`.

    Raises:
        ConfigError: two agents name one adapter and each shall have its own; or the groups leave
            an agent out, or name one that is not there.
    """
    wrong = check_groups(groups)
    if wrong is not None:
        raise ConfigError(f"adapters must be {wrong}, got {groups!r}")
    agents = graph.agents
    own = {agent: _adapter(graph.nodes[agent]) for agent in agents}
    if groups == "per_node":
        names = {agent: own[agent] or agent for agent in agents}
        return _distinct(names)
    if groups == "shared":
        one = set(own.values())
        name = one.pop() if len(one) == 1 else None
        return dict.fromkeys(agents, name or SHARED)
    assert isinstance(groups, dict)
    found = {agent: name for name, members in groups.items() for agent in members}
    return check_adapters(agents, found)


def given_adapters(
    graph: CollabGraph, adapters: Mapping[str, str] | None, groups: AdapterGroups
) -> dict[str, str]:
    """The adapter of each agent: as a mapping says, or else as a setting does.

    Raises:
        ConfigError: both say something, or the one that does says nothing of use.
    """
    if adapters is None:
        return grouped(graph, groups)
    if groups != "per_node":
        raise ConfigError(
            f"team training: adapters are given by agent, and config.adapters is {groups!r}; give "
            "one of the two"
        )
    return check_adapters(graph.agents, adapters)


def check_adapters(agents: Sequence[str], adapters: Mapping[str, str]) -> dict[str, str]:
    """An adapter for each agent and nobody else, in the agents' order.

    Raises:
        ConfigError: an agent is left out, or one is named that is not there.
    """
    missing = [agent for agent in agents if agent not in adapters]
    if missing:
        raise ConfigError(f"team training: no adapter given for {', '.join(missing)}")
    unknown = [agent for agent in adapters if agent not in agents]
    if unknown:
        raise ConfigError(
            f"team training: adapters are given for {', '.join(unknown)}, which the team has not; "
            f"its agents are {', '.join(agents)}"
        )
    return {agent: adapters[agent] for agent in agents}


def speaking_with(graph: CollabGraph, adapters: Mapping[str, str]) -> CollabGraph:
    """The team with each agent speaking through the adapter that is given for it.

    Agents that are no dataclass with a field ``adapter`` stay as they are: they are not the
    library's own, and know themselves what they ask.
    """
    for agent, adapter in adapters.items():
        node = graph.nodes[agent]
        if _names_adapter(node) and _adapter(node) != adapter:
            graph = graph.with_node(dataclasses.replace(node, adapter=adapter), name=agent)  # type: ignore[type-var]
    return graph


def _names_adapter(node: Node) -> bool:
    return "adapter" in getattr(type(node), "__dataclass_fields__", {})


def _adapter(node: Node) -> str | None:
    return getattr(node, "adapter", None) if _names_adapter(node) else None


def _distinct(names: Mapping[str, str]) -> dict[str, str]:
    by_name: dict[str, list[str]] = {}
    for agent, name in names.items():
        by_name.setdefault(name, []).append(agent)
    for name, agents in by_name.items():
        if len(agents) > 1:
            raise ConfigError(
                f"team training: {', '.join(agents)} all speak with adapter '{name}', and "
                "adapters='per_node' gives each its own; set adapters='shared' or name groups, or "
                "give the agents adapters of their own"
            )
    return dict(names)


def _listed(members: object) -> list[str]:
    """The names in a group; a bare string is no list of names."""
    return [] if isinstance(members, str) or not isinstance(members, Sequence) else list(members)
