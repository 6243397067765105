"""Models of a Ray cluster: held in actors, and limits that hold for all processes."""

from __future__ import annotations

from swarm_ui.nodes.models.acting.limits import ClusterLimits, share_limits
from swarm_ui.nodes.models.acting.ray_model import RayModel, RayScoringModel, hold_model

__all__ = ["ClusterLimits", "RayModel", "RayScoringModel", "hold_model", "share_limits"]
