"""A run as one self-contained HTML file, with a viewer for its episodes.

write_report(run.path)  # with the contents of the run's folder
write_report(run.path, ReportData(title=..., summary=..., tables=(...,), episodes=sample))
"""

from swarm_ui.report.contents import (
    Curve,
    CurvePoint,
    EdgeFrame,
    EdgeHistory,
    EpisodeSet,
    Estimate,
    GraphDrawing,
    HeatMap,
    Link,
    Picture,
    ReportData,
    ReportTable,
    Series,
    TableCell,
    credit_map,
)
from swarm_ui.report.page import page, write_report
from swarm_ui.report.run_reader import gathered, learning_curves

__all__ = [
    "Curve",
    "CurvePoint",
    "EdgeFrame",
    "EdgeHistory",
    "EpisodeSet",
    "Estimate",
    "GraphDrawing",
    "HeatMap",
    "Link",
    "Picture",
    "ReportData",
    "ReportTable",
    "Series",
    "TableCell",
    "credit_map",
    "gathered",
    "learning_curves",
    "page",
    "write_report",
]
