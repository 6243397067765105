"""Runs as one self-contained HTML file, with a viewer for their episodes.

write_report(run)  # one run: success, learning, credit, edges, cost, every step
write_report(one_agent, team, trained)  # several runs, compared on the same episodes
"""

from swarm_ui.report.html_tables import HeatMap, credit_map
from swarm_ui.report.page import write_report
from swarm_ui.report.results import ArmResult, Comparison, Cost, Results

__all__ = ["ArmResult", "Comparison", "Cost", "HeatMap", "Results", "credit_map", "write_report"]
