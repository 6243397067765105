"""What a report shows first: its headline, the learning curve, and a decision of the team."""

from swarm_ui.report.first_screen.deciding import team_decision
from swarm_ui.report.first_screen.overview import first_curve, overview

__all__ = ["first_curve", "overview", "team_decision"]
