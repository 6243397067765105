"""The models of a team, the adapter of each of its agents, and the roles in its training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from swarm_ui.credit import Judge
from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.critic import name_of
from swarm_ui.optim.examples import Trainable


def models_of(team: CollabGraph) -> tuple[Trainable, object]:
    """The model that is trained, and the one that answers the agents with its adapters."""
    asked = {id(m): m for a in team.agents if (m := getattr(team.nodes[a], "model", None))}
    acting = next(iter(asked.values()), None)
    learner = getattr(acting, "learner", acting)
    if len(asked) != 1 or not isinstance(learner, Trainable):
        shown = ", ".join(map(repr, asked.values())) or "agents without a model"
        raise ConfigError(
            "team training: expected agents that ask one model in this process whose adapters can "
            f"be trained, such as LocalModel.load() or CausalModel.named('smollm2'), got {shown}"
        )
    return learner, acting


def with_adapters(team: CollabGraph, adapters: Mapping[str, str]) -> CollabGraph:
    """The team, in which each agent uses the adapter that is given for it. Agents that are not
    dataclasses with a field ``adapter`` choose their adapter themselves."""
    for agent, adapter in adapters.items():
        node = team.nodes[agent]
        own = "adapter" in getattr(type(node), "__dataclass_fields__", {})
        if own and getattr(node, "adapter", None) != adapter:
            team = team.with_node(dataclasses.replace(node, adapter=adapter), name=agent)  # type: ignore[type-var]
    return team


def check_roles(config: TeamConfig, critic: object, judge: Judge | None, teacher: object) -> None:
    """Raise ``ConfigError`` for an object that cannot play its role in a training, and for a role
    or a setting that needs another role."""
    for role, given, method in (
        ("critic", critic, "__call__"),
        ("judge", judge, "grade"),
        ("teacher", teacher, "show"),
    ):
        if isinstance(given, type) or (given is not None and not hasattr(given, method)):
            raise ConfigError(
                f"team training: expected a {role}, an object with {method}(), got {given!r:.80}"
            )
    needs = [name_of(teacher)] * (teacher is not None and judge is None)
    needs += ["guide"] * (bool(config.guide) and judge is None)
    needs += ["edge_credit"] * (bool(config.edge_credit) and critic is None)
    if needs:
        raise ConfigError(
            f"team training: {' and '.join(needs)} would not be used, because no critic scores "
            "messages and no judge grades actions; give TeamTrainer(critic=...) or (judge=...), or "
            f"leave {'it' if len(needs) == 1 else 'them'} out"
        )
