"""A run as one self-contained HTML file, with a viewer for its episodes.

write_report(run.path, ReportData(title=..., summary=..., tables=(...,), episodes=sample))
"""

from swarm_ui.report.data import (
    Curve,
    CurvePoint,
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
from swarm_ui.report.page import page, write_report

__all__ = [
    "Curve",
    "CurvePoint",
    "Estimate",
    "GraphDrawing",
    "HeatMap",
    "Picture",
    "ReportData",
    "ReportTable",
    "Series",
    "TableCell",
    "credit_map",
    "page",
    "write_report",
]
