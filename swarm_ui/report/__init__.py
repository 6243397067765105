"""A run as one self-contained HTML file, with a viewer for its episodes.

write_report(run.path)  # all that the run's folder has to show
write_report(run.path, ReportData(title=..., summary=..., tables=(...,), episodes=sample))
"""

from swarm_ui.report.data import (
    Curve,
    CurvePoint,
    EdgeFrame,
    EdgeHistory,
    EpisodeSet,
    Estimate,
    GraphDrawing,
    HeatMap,
    Picture,
    ReportData,
    ReportTable,
    Series,
    TableCell,
    credit_map,
)
from swarm_ui.report.gather import gathered
from swarm_ui.report.page import page, write_report

__all__ = [
    "Curve",
    "CurvePoint",
    "EdgeFrame",
    "EdgeHistory",
    "EpisodeSet",
    "Estimate",
    "GraphDrawing",
    "HeatMap",
    "Picture",
    "ReportData",
    "ReportTable",
    "Series",
    "TableCell",
    "credit_map",
    "gathered",
    "page",
    "write_report",
]
