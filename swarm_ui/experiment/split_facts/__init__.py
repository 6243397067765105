"""Teams for split facts (:mod:`swarm_ui.environments.phone.split`): one agent for each app."""

from __future__ import annotations

from swarm_ui.experiment.split_facts.scripted_agents import ScriptedAgents, scripted_reply
from swarm_ui.experiment.split_facts.split_teams import Edges, SplitTeams, tokens

__all__ = ["Edges", "ScriptedAgents", "SplitTeams", "scripted_reply", "tokens"]
